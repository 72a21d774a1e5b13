#include "window.h"

#include <string.h>
#include <unistd.h>

#include "../layout.h"

enum { WRITES_A_CHECK = 64, SIZE_BYTES = SEGLOG_HEADS_0_MAGIC_AT };

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
    if (!PyArg_ParseTuple(args, "OLLOi", &memory, &first, &end, &lent.length, &lent.descriptor))
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

bool window_write_one(const struct window *window, int64_t offset, const uint8_t *record, size_t size)
{
    int64_t position = offset - window->first;
    return write_all(window->descriptor, record + SIZE_BYTES, size - SIZE_BYTES, position + SIZE_BYTES) &&
           write_all(window->descriptor, record, SIZE_BYTES, position);
}

bool window_write_run(const struct window *window, int64_t offset, const uint8_t *records, size_t size)
{
    return write_all(window->descriptor, records, size, offset - window->first);
}

static bool is_whole(const struct window *window)
{
    Py_ssize_t least = window->memory.len;
    if (window->descriptor >= 0) /* not asked for its times: the next sync would write them too */
        return lseek(window->descriptor, 0, SEEK_END) >= least;
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
    if (!window->memory.obj) /* nothing to look at, and no descriptor: what lacks a window has one lent */
        return true;
    bool is_due = always || now_ms != window->checked_ms || ++window->unchecked >= WRITES_A_CHECK;
    if ((!window->length && window->descriptor < 0) || !is_due)
        return true;
    window->checked_ms = now_ms;
    window->unchecked = 0;
    return is_whole(window);
}
