#include "guarded_call.h"

#include "guard.h"

/* TruncatedError("cut-by-others", position_bytes=lost_at) */
static void raise_lost(size_t lost_at)
{
    PyObject *errors = PyImport_ImportModule("seglog.errors");
    PyObject *type = errors ? PyObject_GetAttrString(errors, "TruncatedError") : NULL;
    PyObject *args = Py_BuildValue("(s)", "cut-by-others");
    PyObject *named = Py_BuildValue("{s:n}", "position_bytes", (Py_ssize_t)lost_at);
    PyObject *error = type && args && named ? PyObject_Call(type, args, named) : NULL;
    if (error)
        PyErr_SetObject(type, error);
    Py_XDECREF(error);
    Py_XDECREF(named);
    Py_XDECREF(args);
    Py_XDECREF(type);
    Py_XDECREF(errors);
}

bool call_guarded(const Py_buffer *view, void (*work)(void *state), void *state)
{
    size_t lost_at = 0;
    bool is_whole;
    guard_up();
    Py_BEGIN_ALLOW_THREADS
    is_whole = guarded(span_of(view->buf, (size_t)view->len), work, state, &lost_at);
    Py_END_ALLOW_THREADS
    guard_down();
    if (!is_whole)
        raise_lost(lost_at);
    return is_whole;
}
