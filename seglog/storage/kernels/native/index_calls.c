#include "index_calls.h"

#include "../layout.h"
#include "guarded_call.h"
#include "index_keys.h"
#include "index_put.h"

struct key_job {
    struct key_rows keys;
    struct span log;
    int64_t phy_offset;
    size_t position;
    bool tags;
};

static void key_job(void *state)
{
    struct key_job *job = state;
    job->position = keys_of_log(&job->keys, job->log, job->phy_offset, job->position, job->tags);
}

PyObject *py_key_rows(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view, rows;
    long long phy_offset;
    Py_ssize_t start;
    int tags;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*Lnpw*", &view, &phy_offset, &start, &tags, &rows))
        return NULL;
    if (phy_offset < 0 || start < 0 || start > view.len) {
        PyErr_SetString(PyExc_ValueError, "keys are those of records within the buffer");
    } else {
        struct key_job job = {
            .keys = {.rows = rows.buf, .room = (size_t)rows.len / SEGLOG_KEY_ROW_SIZE},
            .log = span_of(view.buf, (size_t)view.len),
            .phy_offset = phy_offset,
            .position = (size_t)start,
            .tags = tags,
        };
        if (call_guarded(&view, key_job, &job))
            result = Py_BuildValue("(nn)", (Py_ssize_t)job.keys.count, (Py_ssize_t)job.position);
    }
    PyBuffer_Release(&rows);
    PyBuffer_Release(&view);
    return result;
}

struct put_job {
    struct index_file file;
    const uint8_t *rows;
    uint32_t count, taken;
};

static void put_job(void *state)
{
    struct put_job *job = state;
    job->taken = index_put(&job->file, job->rows, job->count);
}

static bool fits(const Py_buffer *view, unsigned int slot_count, unsigned int entry_count)
{
    uint64_t size = SEGLOG_INDEX_HEADER_SIZE + (uint64_t)slot_count * SEGLOG_INDEX_SLOT_SIZE +
                    (uint64_t)entry_count * SEGLOG_INDEX_ENTRY_SIZE;
    return slot_count > 0 && entry_count <= SEGLOG_MAX_INT && (uint64_t)view->len >= size;
}

PyObject *py_put_keys(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view, rows;
    unsigned int slot_count, entry_count;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "w*IIy*", &view, &slot_count, &entry_count, &rows))
        return NULL;
    uint64_t count = (uint64_t)rows.len / SEGLOG_KEY_ROW_SIZE;
    if (!fits(&view, slot_count, entry_count)) {
        PyErr_SetString(PyExc_ValueError, "the file is shorter than its slots and entries");
    } else {
        struct put_job job = {
            .file = {view.buf, slot_count, entry_count},
            .rows = rows.buf,
            .count = count > SEGLOG_MAX_INT ? SEGLOG_MAX_INT : (uint32_t)count,
        };
        if (call_guarded(&view, put_job, &job))
            result = PyLong_FromUnsignedLong(job.taken);
    }
    PyBuffer_Release(&rows);
    PyBuffer_Release(&view);
    return result;
}
