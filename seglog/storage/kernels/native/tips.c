#include "tips.h"

#include <stddef.h>
#include <structmember.h>

static PyTypeObject *log_tip_type, *queue_tip_type;

static PyObject *new_object(PyTypeObject *type)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    return allocate(type, 0);
}

static void tip_free(PyObject *self, struct window *window)
{
    PyTypeObject *type = Py_TYPE(self);
    window_take_back(window);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *log_tip_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"end_phy_offset", "last_phy_offset", "last_store_ms", "newest_store_ms", NULL};
    long long end, last, last_ms, newest_ms;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "LLLL", names, &end, &last, &last_ms, &newest_ms))
        return NULL;
    LogTip *tip = (LogTip *)new_object(type);
    if (tip) {
        tip->end_phy_offset = end;
        tip->last_phy_offset = last;
        tip->last_store_ms = last_ms;
        tip->newest_store_ms = newest_ms;
        tip->keyed_end = end;
        tip->nudge_at = INT64_MAX;
    }
    return (PyObject *)tip;
}

static PyObject *queue_tip_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"min_offset", "max_offset", "max_phy_offset", NULL};
    long long min, max, max_phy;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "LLL", names, &min, &max, &max_phy))
        return NULL;
    QueueTip *tip = (QueueTip *)new_object(type);
    if (tip) {
        tip->min_offset = min;
        tip->max_offset = max;
        tip->max_phy_offset = max_phy;
    }
    return (PyObject *)tip;
}

static void log_tip_dealloc(PyObject *self)
{
    tip_free(self, &((LogTip *)self)->window);
}

static void queue_tip_dealloc(PyObject *self)
{
    tip_free(self, &((QueueTip *)self)->window);
}

static PyObject *log_tip_lend(PyObject *self, PyObject *args)
{
    return window_lend(&((LogTip *)self)->window, args);
}

static PyObject *queue_tip_lend(PyObject *self, PyObject *args)
{
    return window_lend(&((QueueTip *)self)->window, args);
}

static PyObject *log_tip_take_back(PyObject *self, PyObject *Py_UNUSED(nothing))
{
    window_take_back(&((LogTip *)self)->window);
    Py_RETURN_NONE;
}

static PyObject *queue_tip_take_back(PyObject *self, PyObject *Py_UNUSED(nothing))
{
    window_take_back(&((QueueTip *)self)->window);
    Py_RETURN_NONE;
}

static PyObject *log_tip_enter(PyObject *self, PyObject *Py_UNUSED(nothing))
{
    ((LogTip *)self)->is_shut = 1;
    return Py_NewRef(self);
}

static PyObject *log_tip_exit(PyObject *self, PyObject *Py_UNUSED(args))
{
    ((LogTip *)self)->is_shut = 0;
    Py_RETURN_NONE;
}

static PyMethodDef log_tip_methods[] = {
    {"lend", log_tip_lend, METH_VARARGS, NULL},
    {"take_back", log_tip_take_back, METH_NOARGS, NULL},
    {"__enter__", log_tip_enter, METH_NOARGS, NULL},
    {"__exit__", log_tip_exit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef queue_tip_methods[] = {
    {"lend", queue_tip_lend, METH_VARARGS, NULL},
    {"take_back", queue_tip_take_back, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef log_tip_members[] = {
    {"end_phy_offset", T_LONGLONG, offsetof(LogTip, end_phy_offset), 0, NULL},
    {"last_phy_offset", T_LONGLONG, offsetof(LogTip, last_phy_offset), 0, NULL},
    {"last_store_ms", T_LONGLONG, offsetof(LogTip, last_store_ms), 0, NULL},
    {"newest_store_ms", T_LONGLONG, offsetof(LogTip, newest_store_ms), 0, NULL},
    {"keyed_end", T_LONGLONG, offsetof(LogTip, keyed_end), 0, NULL},
    {"nudge_at", T_LONGLONG, offsetof(LogTip, nudge_at), 0, NULL},
    {"is_shut", T_BOOL, offsetof(LogTip, is_shut), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMemberDef queue_tip_members[] = {
    {"min_offset", T_LONGLONG, offsetof(QueueTip, min_offset), 0, NULL},
    {"max_offset", T_LONGLONG, offsetof(QueueTip, max_offset), 0, NULL},
    {"max_phy_offset", T_LONGLONG, offsetof(QueueTip, max_phy_offset), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot log_tip_slots[] = {
    {Py_tp_new, (void *)log_tip_new},
    {Py_tp_dealloc, (void *)log_tip_dealloc},
    {Py_tp_members, log_tip_members},
    {Py_tp_methods, log_tip_methods},
    {0, NULL},
};

static PyType_Slot queue_tip_slots[] = {
    {Py_tp_new, (void *)queue_tip_new},
    {Py_tp_dealloc, (void *)queue_tip_dealloc},
    {Py_tp_members, queue_tip_members},
    {Py_tp_methods, queue_tip_methods},
    {0, NULL},
};

static PyType_Spec log_tip_spec = {
    .name = "seglog.storage.kernels._native.LogTip",
    .basicsize = sizeof(LogTip),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = log_tip_slots,
};

static PyType_Spec queue_tip_spec = {
    .name = "seglog.storage.kernels._native.QueueTip",
    .basicsize = sizeof(QueueTip),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = queue_tip_slots,
};

static PyObject *checked(PyObject *value, PyTypeObject *type, const char *name)
{
    if (type && Py_IS_TYPE(value, type))
        return value;
    PyErr_Format(PyExc_TypeError, "%s expected", name);
    return NULL;
}

LogTip *as_log_tip(PyObject *value)
{
    return (LogTip *)checked(value, log_tip_type, "a LogTip");
}

QueueTip *as_queue_tip(PyObject *value)
{
    return (QueueTip *)checked(value, queue_tip_type, "a QueueTip");
}

/* Makes a type that the module and this file keep. */
static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec, const char *name)
{
    PyObject *type = PyType_FromSpec(spec);
    if (type && PyModule_AddObjectRef(module, name, type) == 0)
        return (PyTypeObject *)type;
    Py_XDECREF(type);
    return NULL;
}

int tips_add(PyObject *module)
{
    log_tip_type = add_type(module, &log_tip_spec, "LogTip");
    queue_tip_type = add_type(module, &queue_tip_spec, "QueueTip");
    return log_tip_type && queue_tip_type ? 0 : -1;
}
