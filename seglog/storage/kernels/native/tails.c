/* The ends of a log and its queues, and the write windows in their files. */

#include "fast_path.h"

#include <unistd.h>

enum { SIZE_BYTES = SEGLOG_HEADS_0_MAGIC_AT };

/* Releases the memory of a window. */
static void window_revoke(struct write_window *window)
{
    struct write_window old = *window;
    /* Cleared first: a release may run Python code, which must not find the old window. */
    memset(window, 0, sizeof *window);
    if (old.memory.obj)
        PyBuffer_Release(&old.memory);
    Py_XDECREF(old.length);
}

/* Parses the arguments (memory, first, end, length, descriptor) of the method and grants that memory. */
static PyObject *window_grant(struct write_window *window, PyObject *args)
{
    struct write_window granted = {0};
    PyObject *memory;
    long long first, end;
    if (!PyArg_ParseTuple(args, "OLLOi", &memory, &first, &end, &granted.length, &granted.descriptor))
        return NULL;
    if (PyObject_GetBuffer(memory, &granted.memory, PyBUF_WRITABLE) < 0)
        return NULL;
    if (first < 0 || end < first || end - first > granted.memory.len) {
        PyBuffer_Release(&granted.memory);
        PyErr_SetString(PyExc_ValueError, "a window must lie in its memory");
        return NULL;
    }
    granted.first = first;
    granted.end = end;
    granted.checked_ms = INT64_MIN;
    if (granted.length == Py_None)
        granted.length = NULL;
    Py_XINCREF(granted.length);
    window_revoke(window);
    *window = granted;
    Py_RETURN_NONE;
}

static bool write_all(int descriptor, const uint8_t *bytes, size_t size, int64_t position)
{
    while (size > 0) {
        ssize_t count = pwrite(descriptor, bytes, size, (off_t)position);
        if (count <= 0)
            return false;
        bytes += count;
        size -= (size_t)count;
        position += count;
    }
    return true;
}

bool window_pwrite_one(const struct write_window *window, int64_t offset, const uint8_t *record, size_t size)
{
    int64_t position = offset - window->first;
    return write_all(window->descriptor, record + SIZE_BYTES, size - SIZE_BYTES, position + SIZE_BYTES) &&
           write_all(window->descriptor, record, SIZE_BYTES, position);
}

bool window_pwrite_run(const struct write_window *window, int64_t offset, const uint8_t *records, size_t size)
{
    return write_all(window->descriptor, records, size, offset - window->first);
}

static bool is_whole(const struct write_window *window)
{
    Py_ssize_t least = window->memory.len;
    if (window->descriptor >= 0) /* lseek, not fstat: reading the times makes the next sync write them too */
        return lseek(window->descriptor, 0, SEEK_END) >= least;
    PyObject *length = Py_NewRef(window->length); /* held: the call may run code that revokes the window */
    PyObject *answer = PyObject_CallNoArgs(length);
    Py_ssize_t found = answer ? PyLong_AsSsize_t(answer) : -1;
    Py_XDECREF(answer);
    Py_DECREF(length);
    PyErr_Clear();
    return found >= least;
}

bool window_check(struct write_window *window, int64_t now_ms, bool always)
{
    if (!window->memory.obj) /* no file to check; the append fails at window_holds() and gets a window */
        return true;
    bool is_due = always || now_ms != window->checked_ms || ++window->unchecked >= WRITES_A_CHECK;
    if ((!window->length && window->descriptor < 0) || !is_due)
        return true;
    window->checked_ms = now_ms;
    window->unchecked = 0;
    if (is_whole(window))
        return true;
    window->checked_ms = INT64_MIN; /* the next append checks again, also within this millisecond */
    return false;
}

static PyTypeObject *log_tail_type, *queue_tail_type;

static PyObject *log_tail_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"end_phy_offset", "last_phy_offset", "last_store_ms", "newest_store_ms", NULL};
    long long end, last, last_ms, newest_ms;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "LLLL", names, &end, &last, &last_ms, &newest_ms))
        return NULL;
    LogTail *tail = object_new(type);
    if (tail) {
        tail->end_phy_offset = end;
        tail->last_phy_offset = last;
        tail->last_store_ms = last_ms;
        tail->newest_store_ms = newest_ms;
        tail->keyed_end = end;
        tail->wake_allocator_at = INT64_MAX;
    }
    return (PyObject *)tail;
}

static PyObject *queue_tail_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"min_offset", "max_offset", "max_phy_offset", NULL};
    long long min, max, max_phy;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "LLL", names, &min, &max, &max_phy))
        return NULL;
    QueueTail *tail = object_new(type);
    if (tail) {
        tail->min_offset = min;
        tail->max_offset = max;
        tail->own_from = max;
        tail->max_phy_offset = max_phy;
    }
    return (PyObject *)tail;
}

static void tail_dealloc(PyObject *self)
{
    window_revoke(&((Tail *)self)->window);
    object_free(self);
}

static PyObject *tail_grant(PyObject *self, PyObject *args)
{
    return window_grant(&((Tail *)self)->window, args);
}

static PyObject *tail_revoke(PyObject *self, PyObject *Py_UNUSED(nothing))
{
    window_revoke(&((Tail *)self)->window);
    Py_RETURN_NONE;
}

static PyObject *log_tail_enter(PyObject *self, PyObject *Py_UNUSED(nothing))
{
    ((LogTail *)self)->is_shut = 1;
    return Py_NewRef(self);
}

static PyObject *log_tail_exit(PyObject *self, PyObject *Py_UNUSED(args))
{
    ((LogTail *)self)->is_shut = 0;
    Py_RETURN_NONE;
}

static PyMethodDef log_tail_methods[] = {
    {"grant", tail_grant, METH_VARARGS, NULL},
    {"revoke", tail_revoke, METH_NOARGS, NULL},
    {"__enter__", log_tail_enter, METH_NOARGS, NULL},
    {"__exit__", log_tail_exit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef queue_tail_methods[] = {
    {"grant", tail_grant, METH_VARARGS, NULL},
    {"revoke", tail_revoke, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef log_tail_members[] = {
    {"end_phy_offset", T_LONGLONG, offsetof(LogTail, end_phy_offset), 0, NULL},
    {"last_phy_offset", T_LONGLONG, offsetof(LogTail, last_phy_offset), 0, NULL},
    {"last_store_ms", T_LONGLONG, offsetof(LogTail, last_store_ms), 0, NULL},
    {"newest_store_ms", T_LONGLONG, offsetof(LogTail, newest_store_ms), 0, NULL},
    {"keyed_end", T_LONGLONG, offsetof(LogTail, keyed_end), 0, NULL},
    {"wake_allocator_at", T_LONGLONG, offsetof(LogTail, wake_allocator_at), 0, NULL},
    {"past_map_bytes", T_LONGLONG, offsetof(LogTail, past_map_bytes), READONLY, NULL},
    {"is_shut", T_BOOL, offsetof(LogTail, is_shut), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMemberDef queue_tail_members[] = {
    {"min_offset", T_LONGLONG, offsetof(QueueTail, min_offset), 0, NULL},
    {"max_offset", T_LONGLONG, offsetof(QueueTail, max_offset), 0, NULL},
    {"max_phy_offset", T_LONGLONG, offsetof(QueueTail, max_phy_offset), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot log_tail_slots[] = {
    {Py_tp_new, (void *)log_tail_new},
    {Py_tp_dealloc, (void *)tail_dealloc},
    {Py_tp_members, log_tail_members},
    {Py_tp_methods, log_tail_methods},
    {0, NULL},
};

static PyType_Slot queue_tail_slots[] = {
    {Py_tp_new, (void *)queue_tail_new},
    {Py_tp_dealloc, (void *)tail_dealloc},
    {Py_tp_members, queue_tail_members},
    {Py_tp_methods, queue_tail_methods},
    {0, NULL},
};

static PyType_Spec log_tail_spec = {
    .name = "seglog.storage.kernels._native.LogTail",
    .basicsize = sizeof(LogTail),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = log_tail_slots,
};

static PyType_Spec queue_tail_spec = {
    .name = "seglog.storage.kernels._native.QueueTail",
    .basicsize = sizeof(QueueTail),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = queue_tail_slots,
};

static PyObject *checked(PyObject *value, PyTypeObject *type, const char *name)
{
    if (type && Py_IS_TYPE(value, type))
        return value;
    PyErr_Format(PyExc_TypeError, "%s expected", name);
    return NULL;
}

LogTail *as_log_tail(PyObject *value)
{
    return (LogTail *)checked(value, log_tail_type, "a LogTail");
}

QueueTail *as_queue_tail(PyObject *value)
{
    return (QueueTail *)checked(value, queue_tail_type, "a QueueTail");
}

int tails_add(PyObject *module)
{
    log_tail_type = type_add(module, &log_tail_spec, "LogTail");
    queue_tail_type = type_add(module, &queue_tail_spec, "QueueTail");
    return log_tail_type && queue_tail_type ? 0 : -1;
}
