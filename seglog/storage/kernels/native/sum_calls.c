#include "sum_calls.h"

#include "crc32c.h"
#include "guarded_call.h"

struct job {
    struct span bytes;
    size_t block_size;
    uint32_t *sums;
};

static void sum_job(void *state)
{
    struct job *job = state;
    crc32c_of_blocks(job->bytes, job->block_size, job->sums);
}

static PyObject *list_of(const uint32_t *sums, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *sum = PyLong_FromUnsignedLong(sums[i]);
        if (!sum || PyList_SetItem(list, (Py_ssize_t)i, sum) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *sums_of(const Py_buffer *view, size_t block_size)
{
    size_t size = (size_t)view->len, count = size / block_size + (size % block_size != 0);
    struct job job = {span_of(view->buf, size), block_size, PyMem_Calloc(count ? count : 1, sizeof *job.sums)};
    if (!job.sums)
        return PyErr_NoMemory();
    PyObject *list = call_guarded(view, sum_job, &job) ? list_of(job.sums, count) : NULL;
    PyMem_Free(job.sums);
    return list;
}

PyObject *py_block_sums(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view;
    Py_ssize_t block_size;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*n", &view, &block_size))
        return NULL;
    if (block_size <= 0)
        PyErr_SetString(PyExc_ValueError, "a block has some bytes");
    else if (!crc32c_is_quick())
        result = Py_BuildValue("");
    else
        result = sums_of(&view, (size_t)block_size);
    PyBuffer_Release(&view);
    return result;
}
