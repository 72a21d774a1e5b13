#include "lane_type.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

#include "arguments.h"
#include "lane_object.h"
#include "take.h"

static const char *const known_names[KNOWN] = {
    [WAITING] = "waiting",
    [NOTIFY] = "notify",
    [ENSURE] = "ensure",
    [LEND] = "lend",
    [SLOW_PUT] = "put",
    [SLOW_PUT_BATCH] = "put_batch",
    [SLOW_APPEND] = "append",
    [SLOW_APPEND_BATCH] = "append_batch",
    [PUT_RESULT] = "put_result",
    [BATCH_RESULT] = "batch_result",
    [NEW_MESSAGE] = "new_message",
    [RAW_MESSAGE] = "raw_message",
    [USUAL_STORE_HOST] = "store_host",
    [USUAL_DURABILITY] = "durability",
    [SYNC] = "sync",
};

static PyObject *lane_add_queue(PyObject *object, PyObject *args)
{
    PyObject *topic, *tip;
    int queue_id;
    if (!PyArg_ParseTuple(args, "UiO", &topic, &queue_id, &tip))
        return NULL;
    QueueTip *queue = as_queue_tip(tip);
    if (!queue || lane_add(&((Lane *)object)->lane, topic, queue_id, queue) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *lane_forget_all(PyObject *object, PyObject *Py_UNUSED(nothing))
{
    lane_forget(&((Lane *)object)->lane);
    Py_RETURN_NONE;
}

static PyObject *lane_close(PyObject *object, PyObject *Py_UNUSED(nothing))
{
    Lane *self = (Lane *)object;
    self->lane.is_closed = true;
    lane_forget(&self->lane);
    Py_RETURN_NONE;
}

/* Takes over a bool or a number of the owner. */
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

/* The lane reads the system's clock itself. */
static bool take_clock(Lane *self, PyObject *owner)
{
    int64_t is_system;
    if (!take_attribute(owner, "has_system_clock", &is_system))
        return false;
    self->lane.clock = is_system ? NULL : PyObject_GetAttrString(owner, "clock");
    return is_system || self->lane.clock;
}

static bool take_owner(Lane *self, PyObject *tip, PyObject *owner)
{
    int64_t record_crc, max_body_bytes;
    LogTip *log = as_log_tip(tip);
    if (!log)
        return false;
    self->lane.log = (LogTip *)Py_NewRef((PyObject *)log);
    self->lane.topics = PyDict_New();
    for (int i = 0; i < KNOWN; i++) {
        self->known[i] = PyObject_GetAttrString(owner, known_names[i]);
        if (!self->known[i])
            return false;
    }
    if (!self->lane.topics || !take_clock(self, owner) || !PyDict_Check(self->known[WAITING]) ||
        !take_host(self->known[USUAL_STORE_HOST], &self->store_host) ||
        !take_attribute(owner, "record_crc", &record_crc) ||
        !take_attribute(owner, "max_body_bytes", &max_body_bytes))
        return false;
    self->record_crc = record_crc;
    self->lane.max_body_bytes = max_body_bytes > 0 ? (size_t)max_body_bytes : 0;
    self->new_result = (allocfunc)PyType_GetSlot((PyTypeObject *)self->known[PUT_RESULT], Py_tp_alloc);
    return self->new_result != NULL;
}

static PyObject *lane_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *tip, *owner;
    if ((keywords && PyDict_Size(keywords)) || !PyArg_ParseTuple(args, "OO", &tip, &owner))
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "a lane has two parameters by place");
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Lane *self = (Lane *)allocate(type, 0);
    if (self && !take_owner(self, tip, owner)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "no owner of a lane");
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static int lane_traverse(PyObject *object, visitproc visit, void *arg)
{
    Lane *self = (Lane *)object;
    Py_VISIT(Py_TYPE(object));
    for (int i = 0; i < KNOWN; i++) {
        Py_VISIT(self->known[i]);
    }
        Py_VISIT(self->lane.topics);
    Py_VISIT(self->lane.clock);
    return 0;
}

static int lane_clear(PyObject *object)
{
    Lane *self = (Lane *)object;
    self->lane.is_closed = true;
    lane_forget(&self->lane);
    for (int i = 0; i < KNOWN; i++)
        Py_CLEAR(self->known[i]);
    Py_CLEAR(self->lane.clock);
    return 0;
}

static void lane_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    Lane *self = (Lane *)object;
    PyObject_GC_UnTrack(object);
    lane_clear(object);
    Py_XDECREF((PyObject *)self->lane.log);
    Py_XDECREF(self->lane.topics);
    batch_free(&self->lane.batch);
    PyMem_Free(self->lane.scratch);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

#define FAST(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef methods[] = {
    {"put", FAST(lane_put), METH_FASTCALL | METH_KEYWORDS, NULL},
    {"put_soon", FAST(lane_put_soon), METH_FASTCALL | METH_KEYWORDS, NULL},
    {"put_batch", FAST(lane_put_batch), METH_FASTCALL | METH_KEYWORDS, NULL},
    {"append", FAST(lane_append_one), METH_FASTCALL | METH_KEYWORDS, NULL},
    {"append_batch", FAST(lane_append_batch), METH_FASTCALL | METH_KEYWORDS, NULL},
    {"add", lane_add_queue, METH_VARARGS, NULL},
    {"forget", lane_forget_all, METH_NOARGS, NULL},
    {"close", lane_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)lane_new},
    {Py_tp_dealloc, (void *)lane_dealloc},
    {Py_tp_traverse, (void *)lane_traverse},
    {Py_tp_clear, (void *)lane_clear},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "seglog.storage.kernels._native.Lane",
    .basicsize = sizeof(Lane),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

int lane_type_add(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&spec);
    if (!type || !arguments_prepare() || !lane_calls_prepare() || lane_topic_add(module) < 0 ||
        PyModule_AddObjectRef(module, "Lane", type) < 0) {
        Py_XDECREF(type);
        return -1;
    }
    Py_DECREF(type);
    return 0;
}
