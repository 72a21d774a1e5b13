#include "key_calls.h"

#include <stdlib.h>

#include "../layout.h"
#include "guarded_call.h"
#include "index_keys.h"

struct job {
    struct index_keys keys;
    struct span log;
    int64_t phy_offset;
    bool with_tags, has_memory;
};

static void keys_job(void *state)
{
    struct job *job = state;
    job->has_memory = index_keys_of(&job->keys, job->log, job->phy_offset, job->with_tags);
}

PyObject *py_index_keys(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view;
    PyObject *offset, *result = NULL;
    int with_tags, overflow;
    if (!PyArg_ParseTuple(args, "y*Op", &view, &offset, &with_tags))
        return NULL;
    struct job job = {
        .log = span_of(view.buf, (size_t)view.len), .with_tags = with_tags, .has_memory = true};
    job.phy_offset = PyLong_AsLongLongAndOverflow(offset, &overflow);
    /* No record has an offset that is none. */
    bool is_nowhere = overflow || job.phy_offset < 0;
    if (!PyErr_Occurred() && (is_nowhere || call_guarded(&view, keys_job, &job))) {
        if (job.has_memory)
            result = PyBytes_FromStringAndSize((const char *)job.keys.rows,
                                               (Py_ssize_t)(job.keys.count * SEGLOG_KEY_ROW_SIZE));
        else
            PyErr_NoMemory();
    }
    free(job.keys.rows);
    PyBuffer_Release(&view);
    return result;
}
