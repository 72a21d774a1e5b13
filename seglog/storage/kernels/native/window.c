#include "window.h"

#include <string.h>

enum { WRITES_A_CHECK = 64 };

void window_take_back(struct window *window)
{
    struct window old = *window;
    /* What is released may run code of others, who must find no window. */
    memset(window, 0, sizeof *window);
    if (old.memory.obj)
        PyBuffer_Release(&old.memory);
    Py_XDECREF(old.length);
}

PyObject *window_lend(struct window *window, PyObject *args)
{
    struct window lent = {0};
    PyObject *memory;
    long long first, end;
    if (!PyArg_ParseTuple(args, "OLLO", &memory, &first, &end, &lent.length))
        return NULL;
    if (PyObject_GetBuffer(memory, &lent.memory, PyBUF_WRITABLE) < 0)
        return NULL;
    if (first < 0 || end < first || end - first > lent.memory.len) {
        PyBuffer_Release(&lent.memory);
        PyErr_SetString(PyExc_ValueError, "a window must lie in its memory");
        return NULL;
    }
    lent.first = first;
    lent.end = end;
    lent.checked_ms = INT64_MIN;
    if (lent.length == Py_None)
        lent.length = NULL;
    Py_XINCREF(lent.length);
    window_take_back(window);
    *window = lent;
    Py_RETURN_NONE;
}

static bool is_whole(const struct window *window)
{
    Py_ssize_t least = window->memory.len;
    PyObject *length = Py_NewRef(window->length); /* the window may be taken back meanwhile */
    PyObject *answer = PyObject_CallNoArgs(length);
    Py_ssize_t found = answer ? PyLong_AsSsize_t(answer) : -1;
    Py_XDECREF(answer);
    Py_DECREF(length);
    PyErr_Clear();
    return found >= least;
}

bool window_check(struct window *window, int64_t now_ms, bool always)
{
    bool is_due = always || now_ms != window->checked_ms || ++window->unchecked >= WRITES_A_CHECK;
    if (!window->length || !is_due)
        return true;
    window->checked_ms = now_ms;
    window->unchecked = 0;
    return is_whole(window);
}
