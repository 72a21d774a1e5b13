/* Draft for usual values. Of all others, wrong ones among them, the Python twin makes a draft or an error.
 *
 * Everything here runs under the GIL, so a draft needs no lock.
 */

#include "draft_type.h"

#include <stdbool.h>
#include <stddef.h>
#include <structmember.h>

#include "../layout.h"
#include "encode.h"
#include "take.h"

/* The parameters, in the order of the Python twin. */
enum {
    TOPIC,
    QUEUE_ID,
    BODY,
    PROPERTIES,
    TAGS_CODE,
    SYS_FLAG,
    FLAG,
    BORN_TIMESTAMP_MS,
    BORN_HOST,
    STORE_HOST,
    RECONSUME_TIMES,
    PREPARED_TRANSACTION_OFFSET,
    RECORD_CRC,
    PARAMETERS
};

/* record: `size_bytes` of them. */
typedef struct {
    PyObject_HEAD
    PyObject *properties;
    uint8_t *record;
    Py_ssize_t size_bytes;
    int64_t tags_code;
    char takes_queue_offset, record_crc;
} Draft;

static bool take_hosts(PyObject *born, PyObject *store, struct draft_values *values)
{
    if (!take_host(born, &values->born_host))
        return false;
    values->store_host = values->born_host;
    return born == store || take_host(store, &values->store_host);
}

/* Reads all parameters but the body; false for values that the twin must look at. */
static bool take_values(PyObject **given, struct draft_values *values, int64_t *tags_code)
{
    values->record_crc = given[RECORD_CRC] == Py_True;
    return (values->record_crc || given[RECORD_CRC] == Py_False) && take_bytes(given[TOPIC], &values->topic) &&
           take_bytes(given[PROPERTIES], &values->properties) && take_i64(given[TAGS_CODE], tags_code) &&
           take_i32(given[QUEUE_ID], &values->queue_id) && take_i32(given[SYS_FLAG], &values->sys_flag) &&
           take_i32(given[FLAG], &values->flag) &&
           take_i64(given[BORN_TIMESTAMP_MS], &values->born_timestamp_ms) &&
           take_hosts(given[BORN_HOST], given[STORE_HOST], values) &&
           take_i32(given[RECONSUME_TIMES], &values->reconsume_times) &&
           take_i64(given[PREPARED_TRANSACTION_OFFSET], &values->prepared_transaction_offset);
}

static PyObject *new_draft(PyTypeObject *type, const struct draft_values *values, PyObject *properties,
                           int64_t tags_code)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Draft *draft = (Draft *)allocate(type, 0);
    if (!draft)
        return NULL;
    draft->size_bytes = (Py_ssize_t)draft_size(values);
    draft->record = PyMem_Malloc((size_t)draft->size_bytes);
    if (!draft->record) {
        Py_DECREF(draft);
        return PyErr_NoMemory();
    }
    draft_encode(values, draft->record);
    draft->properties = Py_NewRef(properties);
    draft->tags_code = tags_code;
    draft->takes_queue_offset = takes_queue_offset(values->sys_flag);
    draft->record_crc = values->record_crc;
    return (PyObject *)draft;
}

/* Makes the draft if all values are usual ones; *is_usual says so. */
static PyObject *make(PyTypeObject *type, PyObject **given, bool *is_usual)
{
    struct draft_values values;
    Py_buffer body;
    int64_t tags_code;
    *is_usual = false;
    if (!take_values(given, &values, &tags_code) || PyObject_GetBuffer(given[BODY], &body, PyBUF_SIMPLE) < 0)
        return NULL;
    values.body = span_of(body.buf, (size_t)body.len);
    PyObject *draft = NULL;
    *is_usual = draft_is_usual(&values);
    if (*is_usual)
        draft = new_draft(type, &values, given[PROPERTIES], tags_code);
    PyBuffer_Release(&body);
    return draft;
}

static PyObject *call_twin(PyObject *args, PyObject *keywords)
{
    PyObject *module = PyImport_ImportModule("seglog.storage.kernels.append");
    PyObject *twin = module ? PyObject_GetAttrString(module, "PythonDraft") : NULL;
    PyObject *draft = twin ? PyObject_Call(twin, args, keywords) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(twin);
    return draft;
}

static PyObject *draft_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *given[PARAMETERS];
    if (PyTuple_Size(args) != PARAMETERS || (keywords && PyDict_Size(keywords)))
        return call_twin(args, keywords);
    for (int i = 0; i < PARAMETERS; i++)
        given[i] = PyTuple_GetItem(args, i);
    bool is_usual;
    PyObject *draft = make(type, given, &is_usual);
    if (is_usual)
        return draft;
    PyErr_Clear();
    return call_twin(args, keywords);
}

static void draft_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Draft *draft = (Draft *)self;
    PyMem_Free(draft->record);
    Py_XDECREF(draft->properties);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* Writes the placed record to buffer[at : at + size]. */
static int publish(const Draft *draft, PyObject *target, Py_ssize_t at)
{
    Py_buffer buffer;
    if (PyObject_GetBuffer(target, &buffer, PyBUF_WRITABLE) < 0)
        return -1;
    bool fits = at >= 0 && at <= buffer.len && draft->size_bytes <= buffer.len - at;
    if (fits)
        draft_publish(draft->record, (size_t)draft->size_bytes, (uint8_t *)buffer.buf + at);
    else
        PyErr_Format(PyExc_ValueError, "%zd bytes at %zd do not fit a buffer of %zd", draft->size_bytes, at,
                     buffer.len);
    PyBuffer_Release(&buffer);
    return fits ? 0 : -1;
}

static PyObject *draft_write(PyObject *self, PyObject *args)
{
    Draft *draft = (Draft *)self;
    PyObject *target;
    Py_ssize_t at;
    long long queue_offset, phy_offset, store_timestamp_ms;
    if (!PyArg_ParseTuple(args, "OnLLL", &target, &at, &queue_offset, &phy_offset, &store_timestamp_ms))
        return NULL;
    draft_place(draft->record, (size_t)draft->size_bytes, draft->record_crc, queue_offset, phy_offset,
                store_timestamp_ms);
    if (publish(draft, target, at) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* The topics whose codes depend on the store time are the twin's. */
static PyObject *draft_unit_tags_code(PyObject *self, PyObject *Py_UNUSED(store_timestamp_ms))
{
    return PyLong_FromLongLong(((Draft *)self)->tags_code);
}

static PyMemberDef members[] = {
    {"properties", T_OBJECT_EX, offsetof(Draft, properties), READONLY, NULL},
    {"size_bytes", T_PYSSIZET, offsetof(Draft, size_bytes), READONLY, NULL},
    {"takes_queue_offset", T_BOOL, offsetof(Draft, takes_queue_offset), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef methods[] = {
    {"write", draft_write, METH_VARARGS, NULL},
    {"unit_tags_code", draft_unit_tags_code, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)draft_new},
    {Py_tp_dealloc, (void *)draft_dealloc},
    {Py_tp_members, members},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "seglog.storage.kernels._native.Draft",
    .basicsize = sizeof(Draft),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

int draft_type_add(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&spec);
    if (!type || PyModule_AddObjectRef(module, "Draft", type) < 0) {
        Py_XDECREF(type);
        return -1;
    }
    Py_DECREF(type);
    return 0;
}
