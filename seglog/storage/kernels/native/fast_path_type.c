/* The types FastPath, with the contract of PythonFastPath, and StoreCalls, whose calls enter it first. */

#include "fast_path.h"
#include "put_result.h"
#include "reads.h"

static const char *const known_names[KNOWN] = {
    [WAITING] = "waiting",
    [NOTIFY] = "notify",
    [ENSURE] = "ensure",
    [PUT_RESULT] = "put_result",
    [BATCH_RESULT] = "batch_result",
    [NEW_MESSAGE] = "new_message",
    [RAW_MESSAGE] = "raw_message",
    [USUAL_STORE_HOST] = "store_host",
    [USUAL_DURABILITY] = "durability",
    [SYNC] = "sync",
    [GATHERED] = "gathered",
};

static PyObject *add_queue(PyObject *object, PyObject *args)
{
    PyObject *topic, *tail;
    int queue_id;
    if (!PyArg_ParseTuple(args, "UiO", &topic, &queue_id, &tail))
        return NULL;
    QueueTail *queue = as_queue_tail(tail);
    if (!queue || fast_path_add_queue((FastPath *)object, topic, queue_id, queue) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *forget_all(PyObject *object, PyObject *Py_UNUSED(nothing))
{
    fast_path_forget((FastPath *)object);
    Py_RETURN_NONE;
}

static PyObject *fast_path_close(PyObject *object, PyObject *Py_UNUSED(nothing))
{
    FastPath *self = (FastPath *)object;
    self->is_closed = true;
    fast_path_forget(self);
    Py_RETURN_NONE;
}

/* Reads a bool or a number of the owner. */
static bool take_attribute(PyObject *owner, const char *name, int64_t *number)
{
    PyObject *value = PyObject_GetAttrString(owner, name);
    bool is_taken = value && PyLong_Check(value); /* a bool as well */
    if (is_taken) {
        *number = PyLong_AsLongLong(value);
        is_taken = !PyErr_Occurred();
    }
    Py_XDECREF(value);
    return is_taken;
}

/* Reads the clock of the owner; NULL for the system's clock, which is read without Python. */
static bool take_clock(FastPath *self, PyObject *owner)
{
    int64_t is_system;
    if (!take_attribute(owner, "has_system_clock", &is_system))
        return false;
    self->clock = is_system ? NULL : PyObject_GetAttrString(owner, "clock");
    return is_system || self->clock;
}

static bool take_owner(FastPath *self, PyObject *tail, PyObject *owner)
{
    int64_t record_crc, max_body_bytes;
    LogTail *log = as_log_tail(tail);
    if (!log)
        return false;
    self->log = (LogTail *)Py_NewRef((PyObject *)log);
    self->topics = PyDict_New();
    for (int i = 0; i < KNOWN; i++) {
        self->known[i] = PyObject_GetAttrString(owner, known_names[i]);
        if (!self->known[i])
            return false;
    }
    if (!self->topics || !take_clock(self, owner) || !PyDict_Check(self->known[WAITING]) ||
        !PyList_CheckExact(self->known[GATHERED]) ||
        !py_to_host(self->known[USUAL_STORE_HOST], &self->store_host) ||
        !take_attribute(owner, "record_crc", &record_crc) ||
        !take_attribute(owner, "max_body_bytes", &max_body_bytes))
        return false;
    self->record_crc = record_crc;
    self->max_body_bytes = max_body_bytes > 0 ? (size_t)max_body_bytes : 0;
    const struct record_values shared = {
        .born_host = self->store_host, .store_host = self->store_host, .record_crc = self->record_crc};
    if (!record_shares_usual(&shared))
        return false;
    self->bare_size = record_bare_size(&shared);
    record_head_make(&shared, &self->head);
    return PyType_Check(self->known[PUT_RESULT]) && put_result_bind((PyTypeObject *)self->known[PUT_RESULT]);
}

static PyObject *fast_path_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *tail, *owner;
    if ((keywords && PyDict_Size(keywords)) || !PyArg_ParseTuple(args, "OO", &tail, &owner))
        return PyErr_Occurred() ? NULL
                                : PyErr_Format(PyExc_TypeError, "a fast path has two parameters by place");
    FastPath *self = object_new(type);
    if (self && !take_owner(self, tail, owner)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "no owner of a fast path");
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static int fast_path_traverse(PyObject *object, visitproc visit, void *arg)
{
    FastPath *self = (FastPath *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->topics);
    for (int i = 0; i < KNOWN; i++)
        Py_VISIT(self->known[i]);
    Py_VISIT(self->clock);
    return 0;
}

static int fast_path_clear(PyObject *object)
{
    FastPath *self = (FastPath *)object;
    self->is_closed = true;
    fast_path_forget(self);
    for (int i = 0; i < KNOWN; i++)
        Py_CLEAR(self->known[i]);
    Py_CLEAR(self->clock);
    return 0;
}

static void fast_path_dealloc(PyObject *object)
{
    FastPath *self = (FastPath *)object;
    PyObject_GC_UnTrack(object);
    fast_path_clear(object);
    Py_XDECREF((PyObject *)self->log);
    Py_XDECREF(self->topics);
    batch_free(&self->batch);
    PyMem_Free(self->scratch);
    object_free(object);
}

static PyMethodDef methods[] = {
    FAST_METHOD("try_put", fast_path_try_put),
    FAST_METHOD("try_put_batch", fast_path_try_put_batch),
    FAST_METHOD("try_append", fast_path_try_append),
    FAST_METHOD("try_append_batch", fast_path_try_append_batch),
    {"try_puts", fast_path_try_puts, METH_O, NULL},
    {"add", add_queue, METH_VARARGS, NULL},
    {"forget", forget_all, METH_NOARGS, NULL},
    {"close", fast_path_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"lacks_window", T_BOOL, offsetof(FastPath, lacks_window), 0, NULL},
    {"gathered", T_OBJECT_EX, offsetof(FastPath, known[GATHERED]), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)fast_path_new},
    {Py_tp_dealloc, (void *)fast_path_dealloc},
    {Py_tp_traverse, (void *)fast_path_traverse},
    {Py_tp_clear, (void *)fast_path_clear},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "seglog.storage.kernels._native.FastPath",
    .basicsize = sizeof(FastPath),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

static PyTypeObject *fast_path_type;

FastPath *as_fast_path(PyObject *value)
{
    return Py_IS_TYPE(value, fast_path_type) ? (FastPath *)value : NULL;
}

int fast_path_add(PyObject *module)
{
    if (!fast_path_calls_prepare() || !lean_put_prepare() || !fast_topic_prepare())
        return -1;
    fast_path_type = type_add(module, &spec, "FastPath");
    return fast_path_type ? 0 : -1;
}

/* The calls of a store that append and read: a base class of MessageStore, created from a Python class that has
 * their signatures and documentation. Each call is tried natively first; if that is not possible, the method
 * of the Python class does it, with the same arguments.
 */

enum call_name { PUT, APPEND, PUT_BATCH, APPEND_BATCH, GET, CALLS };

typedef struct {
    PyObject_HEAD
    FastPath *fast_path; /* NULL for a store without native appends */
    PyObject *reads;     /* an object of the type Reads, or NULL */
} StoreCalls;

static const char *const call_texts[CALLS] = {
    [PUT] = "put", [APPEND] = "append", [PUT_BATCH] = "put_batch", [APPEND_BATCH] = "append_batch",
    [GET] = "get",
};

/* Methods of the Python class, and their documentation. */
static PyObject *twins[CALLS], *texts[CALLS];

static PyObject *or_twin(PyObject *result, enum call_name name, PyObject *self, PyObject *const *args,
                         Py_ssize_t count, PyObject *names)
{
    if (result || PyErr_Occurred())
        return result;
    return call_method(twins[name], self, args, count, names);
}

#define APPENDING(function, native, name)                                                                    \
    static PyObject *function(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)      \
    {                                                                                                        \
        FastPath *path = ((StoreCalls *)self)->fast_path;                                                    \
        return or_twin(path ? native(path, args, count, names) : NULL, name, self, args, count, names);      \
    }

APPENDING(calls_put, fast_path_put, PUT)
APPENDING(calls_append, fast_path_append, APPEND)
APPENDING(calls_put_batch, fast_path_put_batch, PUT_BATCH)
APPENDING(calls_append_batch, fast_path_append_batch, APPEND_BATCH)

static PyObject *calls_get(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    PyObject *reads = ((StoreCalls *)self)->reads;
    return or_twin(reads ? reads_get(reads, args, count, names) : NULL, GET, self, args, count, names);
}

/* Sets the fast path and the reads if they are native, once; returns whether the fast path is native. */
static PyObject *calls_serve(PyObject *object, PyObject *args)
{
    PyObject *path, *reads;
    StoreCalls *self = (StoreCalls *)object;
    if (!PyArg_ParseTuple(args, "OO", &path, &reads))
        return NULL;
    if (self->fast_path || self->reads)
        return PyErr_Format(PyExc_RuntimeError, "the calls are served already");
    if (as_fast_path(path))
        self->fast_path = (FastPath *)Py_NewRef(path);
    if (is_reads(reads))
        self->reads = Py_NewRef(reads);
    return PyBool_FromLong(self->fast_path != NULL);
}

static int calls_traverse(PyObject *object, visitproc visit, void *arg)
{
    StoreCalls *self = (StoreCalls *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT((PyObject *)self->fast_path);
    Py_VISIT(self->reads);
    return 0;
}

static int calls_clear(PyObject *object)
{
    StoreCalls *self = (StoreCalls *)object;
    PyObject *path = (PyObject *)self->fast_path;
    self->fast_path = NULL;
    Py_XDECREF(path);
    Py_CLEAR(self->reads);
    return 0;
}

static void calls_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    calls_clear(object);
    object_free(object);
}

static PyMethodDef calls_methods[] = {
    [PUT] = FAST_METHOD("put", calls_put),
    [APPEND] = FAST_METHOD("append", calls_append),
    [PUT_BATCH] = FAST_METHOD("put_batch", calls_put_batch),
    [APPEND_BATCH] = FAST_METHOD("append_batch", calls_append_batch),
    [GET] = FAST_METHOD("get", calls_get),
    {"_serve_natively", calls_serve, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot calls_slots[] = {
    {Py_tp_dealloc, (void *)calls_dealloc},
    {Py_tp_traverse, (void *)calls_traverse},
    {Py_tp_clear, (void *)calls_clear},
    {Py_tp_methods, calls_methods},
    {0, NULL},
};

static PyType_Spec calls_spec = {
    .name = "seglog.storage.kernels._native.StoreCalls",
    .basicsize = sizeof(StoreCalls),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .slots = calls_slots,
};

/* Returns the class for a Python class without instance fields, and a dict with the documentation of its
 * calls. */
PyObject *py_store_calls(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *python, *documents;
    if (!PyArg_ParseTuple(args, "O!O!", &PyType_Type, &python, &PyDict_Type, &documents))
        return NULL;
    if (twins[PUT])
        return PyErr_Format(PyExc_RuntimeError, "there is one class of calls");
    for (int i = 0; i < CALLS; i++) {
        PyObject *text = PyDict_GetItemString(documents, call_texts[i]);
        if (!text)
            return PyErr_Format(PyExc_KeyError, "%s", call_texts[i]);
        calls_methods[i].ml_doc = PyUnicode_AsUTF8AndSize(text, NULL);
        PyObject *twin = calls_methods[i].ml_doc ? PyObject_GetAttrString(python, call_texts[i]) : NULL;
        if (!twin)
            return NULL;
        texts[i] = Py_NewRef(text); /* the type points into it */
        twins[i] = twin;
    }
    PyObject *bases = PyTuple_Pack(1, python);
    PyObject *type = bases ? PyType_FromSpecWithBases(&calls_spec, bases) : NULL;
    Py_XDECREF(bases);
    return type;
}
