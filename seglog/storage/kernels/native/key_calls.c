#include "key_calls.h"

#include <string.h>

#include "../layout.h"
#include "guard.h"
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

struct have_job {
    struct span log, key;
    int64_t first;
    const uint8_t *places; /* int64, in the byte order of the machine */
    size_t count;
    uint8_t *have;
};

/* What cannot be read as a record may have any key. */
static void have_job(void *state)
{
    struct have_job *job = state;
    struct record record;
    for (size_t i = 0; i < job->count; i++) {
        int64_t place;
        memcpy(&place, job->places + i * sizeof place, sizeof place);
        settle_memory();
        uint64_t position = (uint64_t)place - (uint64_t)job->first;
        job->have[i] = place < job->first || position > job->log.size ||
                       !record_read(span_of(job->log.at + position, job->log.size - (size_t)position), place,
                                    &record) ||
                       record_has_key(&record, job->key);
    }
}

PyObject *py_have_key(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view, places, key;
    long long first;
    if (!PyArg_ParseTuple(args, "y*Ly*y*", &view, &first, &places, &key))
        return NULL;
    size_t count = (size_t)places.len / sizeof(int64_t);
    PyObject *have = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)count);
    if (have) {
        struct have_job job = {
            span_of(view.buf, (size_t)view.len),
            span_of(key.buf, (size_t)key.len),
            first,
            places.buf,
            count,
            (uint8_t *)PyBytes_AsString(have),
        };
        if (!call_guarded(&view, have_job, &job))
            Py_CLEAR(have);
    }
    PyBuffer_Release(&key);
    PyBuffer_Release(&places);
    PyBuffer_Release(&view);
    return have;
}
