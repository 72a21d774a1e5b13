#include "key_calls.h"

#include "../layout.h"
#include "guarded_call.h"
#include "positions.h"
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

static PyObject *result_of(const struct window_keys *window)
{
    PyObject *rows = PyBytes_FromStringAndSize((const char *)window->keys.rows,
                                               (Py_ssize_t)(window->keys.count * SEGLOG_KEY_ROW_SIZE));
    PyObject *lost = list_of_positions(window->lost, window->lost_count);
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
    int tags;
    bool is_possible;
    if (!PyArg_ParseTuple(args, "y*Op", &view, &offset, &tags))
        return NULL;
    struct job job = {.log = span_of(view.buf, (size_t)view.len), .tags = tags, .has_memory = true};
    if (take_phy_offset(offset, &job.phy_offset, &is_possible) &&
        (!is_possible || call_guarded(&view, keys_job, &job)))
        result = job.has_memory ? result_of(&job.window) : PyErr_NoMemory();
    window_keys_free(&job.window);
    PyBuffer_Release(&view);
    return result;
}
