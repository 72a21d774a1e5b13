#include "key_calls.h"

#include "../layout.h"
#include "guarded_call.h"
#include "window_keys.h"

struct job {
    struct window_keys window;
    struct span log;
    int64_t phy_offset;
    bool tags, has_memory;
};

static void keys_job(void *state)
{
    struct job *job = state;
    job->has_memory = window_keys_of(&job->window, job->log, job->phy_offset, job->tags);
}

static PyObject *places_of(const struct window_keys *window)
{
    PyObject *list = PyList_New((Py_ssize_t)window->lost_count);
    for (size_t i = 0; list && i < window->lost_count; i++) {
        PyObject *position = PyLong_FromSize_t(window->lost[i]);
        if (!position || PyList_SetItem(list, (Py_ssize_t)i, position) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *result_of(const struct window_keys *window)
{
    PyObject *rows = PyBytes_FromStringAndSize((const char *)window->keys.rows,
                                               (Py_ssize_t)(window->keys.count * SEGLOG_KEY_ROW_SIZE));
    PyObject *lost = places_of(window);
    if (rows && lost)
        return Py_BuildValue("(NNn)", rows, lost, (Py_ssize_t)window->with_crc);
    Py_XDECREF(rows);
    Py_XDECREF(lost);
    return NULL;
}

PyObject *py_index_keys(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view;
    PyObject *offset, *result = NULL;
    int tags, overflow;
    if (!PyArg_ParseTuple(args, "y*Op", &view, &offset, &tags))
        return NULL;
    struct job job = {.log = span_of(view.buf, (size_t)view.len), .tags = tags, .has_memory = true};
    job.phy_offset = PyLong_AsLongLongAndOverflow(offset, &overflow);
    /* No record has an offset that is none. */
    bool is_nowhere = overflow || job.phy_offset < 0;
    if (!PyErr_Occurred() && (is_nowhere || call_guarded(&view, keys_job, &job)))
        result = job.has_memory ? result_of(&job.window) : PyErr_NoMemory();
    window_keys_free(&job.window);
    PyBuffer_Release(&view);
    return result;
}
