/* The type of results of puts. A result behaves as the named tuple PutResult in almost every operation: all
 * operations but the access to its fields are done on such a tuple, which is created for the operation. Only
 * C code that checks for the type tuple itself sees another type: `%` of text, JSON. Used under the GIL only.
 */

#include "put_result.h"

enum field {
    TOPIC,
    QUEUE_ID,
    QUEUE_OFFSET,
    PHY_OFFSET,
    SIZE_BYTES,
    STORE_TIMESTAMP_MS,
    STORE_HOST,
    DURABILITY,
    FIELDS
};

enum { MOST_FREE = 64 };

static PyTypeObject *result_type, *tuple_type;
static PyObject *field_names[FIELDS], *class_name;
static allocfunc new_result, new_tuple;

/* Freed results for reuse. */
static PutResult *free_results[MOST_FREE];
static size_t free_count;

PutResult *put_result_new(PyObject *topic, PyObject *store_host, PyObject *durability)
{
    PyObject *object = free_count ? PyObject_Init((PyObject *)free_results[--free_count], result_type)
                                  : new_result(result_type, 0);
    PutResult *result = (PutResult *)object;
    if (result) {
        result->topic = Py_NewRef(topic);
        result->store_host = Py_NewRef(store_host);
        result->durability = Py_NewRef(durability);
    }
    return result;
}

static void result_dealloc(PyObject *self)
{
    PutResult *result = (PutResult *)self;
    Py_DECREF(result->topic);
    Py_DECREF(result->store_host);
    Py_DECREF(result->durability);
    if (free_count == MOST_FREE) {
        object_free(self);
        return;
    }
    free_results[free_count++] = result;
    Py_DECREF((PyObject *)result_type);
}

static PyObject *field_at(PyObject *self, Py_ssize_t field)
{
    PutResult *result = (PutResult *)self;
    switch (field) {
    case TOPIC:
        return Py_NewRef(result->topic);
    case QUEUE_ID:
        return PyLong_FromLong(result->queue_id);
    case QUEUE_OFFSET:
        return PyLong_FromLongLong(result->queue_offset);
    case PHY_OFFSET:
        return PyLong_FromLongLong(result->phy_offset);
    case SIZE_BYTES:
        return PyLong_FromLongLong(result->size_bytes);
    case STORE_TIMESTAMP_MS:
        return PyLong_FromLongLong(result->store_timestamp_ms);
    case STORE_HOST:
        return Py_NewRef(result->store_host);
    case DURABILITY:
        return Py_NewRef(result->durability);
    default:
        return PyErr_Format(PyExc_IndexError, "tuple index out of range");
    }
}

/* Returns the named tuple of a result. */
static PyObject *tuple_of(PyObject *self)
{
    PyObject *tuple = new_tuple(tuple_type, FIELDS);
    for (Py_ssize_t field = 0; tuple && field < FIELDS; field++) {
        PyObject *value = field_at(self, field);
        if (!value || PyTuple_SetItem(tuple, field, value) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* Returns a new reference to the value; for a result, to its tuple. */
static PyObject *plain(PyObject *value)
{
    return Py_IS_TYPE(value, result_type) ? tuple_of(value) : Py_NewRef(value);
}

static PyObject *result_getattro(PyObject *self, PyObject *name)
{
    for (Py_ssize_t field = 0; field < FIELDS; field++) /* names in code are interned */
        if (name == field_names[field])
            return field_at(self, field);
    if (name == class_name)
        return Py_NewRef((PyObject *)tuple_type);
    PyObject *tuple = tuple_of(self);
    PyObject *value = tuple ? PyObject_GetAttr(tuple, name) : NULL;
    Py_XDECREF(tuple);
    return value;
}

static PyObject *asked_of_tuple(PyObject *self, PyObject *(*ask)(PyObject *tuple))
{
    PyObject *tuple = tuple_of(self);
    PyObject *answer = tuple ? ask(tuple) : NULL;
    Py_XDECREF(tuple);
    return answer;
}

static PyObject *result_repr(PyObject *self)
{
    return asked_of_tuple(self, PyObject_Repr);
}

static PyObject *result_iter(PyObject *self)
{
    return asked_of_tuple(self, PyObject_GetIter);
}

static Py_hash_t result_hash(PyObject *self)
{
    PyObject *tuple = tuple_of(self);
    Py_hash_t hash = tuple ? PyObject_Hash(tuple) : -1;
    Py_XDECREF(tuple);
    return hash;
}

/* Returns the result of an operation on two values; PutResults among them are passed as tuples. */
static PyObject *of_plain(PyObject *one, PyObject *other, PyObject *(*operation)(PyObject *, PyObject *))
{
    PyObject *first = plain(one), *second = first ? plain(other) : NULL;
    PyObject *answer = second ? operation(first, second) : NULL;
    Py_XDECREF(first);
    Py_XDECREF(second);
    return answer;
}

static PyObject *result_richcompare(PyObject *self, PyObject *other, int how)
{
    PyObject *first = plain(self), *second = first ? plain(other) : NULL;
    PyObject *answer = second ? PyObject_RichCompare(first, second, how) : NULL;
    Py_XDECREF(first);
    Py_XDECREF(second);
    return answer;
}

static PyObject *result_subscript(PyObject *self, PyObject *key)
{
    return of_plain(self, key, PyObject_GetItem);
}

/* The result may be on either side of `+` and `*`. */
static PyObject *result_add(PyObject *one, PyObject *other)
{
    return of_plain(one, other, PyNumber_Add);
}

static PyObject *result_multiply(PyObject *one, PyObject *other)
{
    return of_plain(one, other, PyNumber_Multiply);
}

static Py_ssize_t result_length(PyObject *Py_UNUSED(self))
{
    return FIELDS;
}

/* type(result)(...): a named tuple, for code that creates a copy with changed fields. */
static PyObject *result_of_values(PyTypeObject *Py_UNUSED(type), PyObject *args, PyObject *keywords)
{
    return PyObject_Call((PyObject *)tuple_type, args, keywords);
}

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)result_of_values},
    {Py_tp_dealloc, (void *)result_dealloc},
    {Py_tp_getattro, (void *)result_getattro},
    {Py_tp_repr, (void *)result_repr},
    {Py_tp_iter, (void *)result_iter},
    {Py_tp_hash, (void *)result_hash},
    {Py_tp_richcompare, (void *)result_richcompare},
    {Py_sq_length, (void *)result_length},
    {Py_sq_item, (void *)field_at},
    {Py_mp_subscript, (void *)result_subscript},
    {Py_nb_add, (void *)result_add},
    {Py_nb_multiply, (void *)result_multiply},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "seglog.storage.kernels._native.PutResult",
    .basicsize = sizeof(PutResult),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

/* Registers the type as a Sequence, so that sequence patterns match a result. */
static bool register_sequence(void)
{
    PyObject *module = PyImport_ImportModule("collections.abc");
    PyObject *sequence = module ? PyObject_GetAttrString(module, "Sequence") : NULL;
    PyObject *answer = NULL;
    if (sequence)
        answer = PyObject_CallMethod(sequence, "register", "O", (PyObject *)result_type);
    Py_XDECREF(module);
    Py_XDECREF(sequence);
    Py_XDECREF(answer);
    return answer;
}

bool put_result_bind(PyTypeObject *type)
{
    static const char *const texts[FIELDS] = {
        [TOPIC] = "topic",
        [QUEUE_ID] = "queue_id",
        [QUEUE_OFFSET] = "queue_offset",
        [PHY_OFFSET] = "phy_offset",
        [SIZE_BYTES] = "size_bytes",
        [STORE_TIMESTAMP_MS] = "store_timestamp_ms",
        [STORE_HOST] = "store_host",
        [DURABILITY] = "durability",
    };
    if (type == tuple_type)
        return true;
    if (tuple_type) {
        PyErr_SetString(PyExc_TypeError, "results of puts are of another class already");
        return false;
    }
    class_name = PyUnicode_InternFromString("__class__");
    result_type = type_add(NULL, &spec, NULL);
    if (!class_name || !result_type || !intern(field_names, texts, FIELDS) || !register_sequence())
        return false;
    new_result = (allocfunc)PyType_GetSlot(result_type, Py_tp_alloc);
    new_tuple = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    tuple_type = (PyTypeObject *)Py_NewRef((PyObject *)type);
    return true;
}
