#include "walk_calls.h"

#include "../layout.h"
#include "guarded_call.h"
#include "positions.h"
#include "walk.h"

/* One walk or search; begin is where it started, or the size of the log if nothing was found to start at. */
struct job {
    struct walk walk;
    struct span log;
    int64_t phy_offset;
    size_t start, until, begin;
    bool verify, resync, has_memory;
};

static void walk_job(void *state)
{
    struct job *job = state;
    job->begin = job->start;
    if (job->resync)
        job->begin = find_record(job->log, job->phy_offset, job->start, job->until);
    job->walk.position = job->begin;
    job->has_memory = walk_on(&job->walk, job->log, job->phy_offset, job->until, job->verify);
}

static void find_job(void *state)
{
    struct job *job = state;
    job->begin = find_record(job->log, job->phy_offset, job->start, job->until);
}

/* Does the work, unless no record could have the physical offset: then it ends where it starts. */
static bool run(struct job *job, const Py_buffer *view, PyObject *offset, void (*work)(void *state))
{
    bool is_possible;
    job->log = span_of(view->buf, (size_t)view->len);
    job->has_memory = true;
    job->begin = job->log.size;
    if (!take_phy_offset(offset, &job->phy_offset, &is_possible))
        return false;
    if (!is_possible)
        return true;
    if (!call_guarded(view, work, job))
        return false;
    if (!job->has_memory)
        PyErr_NoMemory();
    return job->has_memory;
}

/* The number that the caller has for one queue, -1 with an exception. */
static int32_t ask_number(PyObject *number_of, const struct queue *queue)
{
    PyObject *answer = PyObject_CallFunction(number_of, "y#i", (const char *)queue->topic.at,
                                             (Py_ssize_t)queue->topic.size, (int)queue->id);
    if (!answer)
        return -1;
    long number = PyLong_AsLong(answer);
    Py_DECREF(answer);
    if (!PyErr_Occurred() && (number < 0 || number > INT32_MAX))
        PyErr_SetString(PyExc_OverflowError, "the number of a queue must fit a row");
    return PyErr_Occurred() ? -1 : (int32_t)number;
}

/* Numbers queues as the caller does, in the order in which they appeared. */
static bool renumber(struct walk *walk, PyObject *number_of)
{
    size_t count = walk->queues.count;
    int32_t *numbers = PyMem_Malloc(count ? count * sizeof *numbers : 1);
    if (!numbers) {
        PyErr_NoMemory();
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        numbers[i] = ask_number(number_of, &walk->queues.list[i]);
        if (numbers[i] < 0) {
            PyMem_Free(numbers);
            return false;
        }
    }
    walk_renumber(walk, numbers);
    PyMem_Free(numbers);
    return true;
}

static PyObject *queues_of(const struct walk *walk)
{
    PyObject *list = PyList_New((Py_ssize_t)walk->queues.count);
    for (size_t i = 0; list && i < walk->queues.count; i++) {
        const struct queue *queue = &walk->queues.list[i];
        PyObject *name = Py_BuildValue("(y#i)", (const char *)queue->topic.at,
                                       (Py_ssize_t)queue->topic.size, (int)queue->id);
        if (!name || PyList_SetItem(list, (Py_ssize_t)i, name) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *walk_result(struct walk *walk, PyObject *number_of)
{
    if (!renumber(walk, number_of))
        return NULL;
    PyObject *packed =
        PyBytes_FromStringAndSize((const char *)walk->rows, (Py_ssize_t)(walk->count * SEGLOG_ROW_SIZE));
    PyObject *saying_more = list_of_positions(walk->saying_more, walk->more_count);
    if (packed && saying_more)
        return Py_BuildValue("(NNn)", packed, saying_more, (Py_ssize_t)walk->position);
    Py_XDECREF(packed);
    Py_XDECREF(saying_more);
    return NULL;
}

static PyObject *stretch_result(const struct job *job)
{
    PyObject *saying_more = list_of_positions(job->walk.saying_more, job->walk.more_count);
    PyObject *queues = queues_of(&job->walk);
    if (saying_more && queues)
        return Py_BuildValue("(nNnnN)", (Py_ssize_t)job->walk.count, saying_more, (Py_ssize_t)job->begin,
                             (Py_ssize_t)job->walk.position, queues);
    Py_XDECREF(saying_more);
    Py_XDECREF(queues);
    return NULL;
}

PyObject *py_walk(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view;
    PyObject *offset, *number_of, *result = NULL;
    int verify;
    if (!PyArg_ParseTuple(args, "y*OpO", &view, &offset, &verify, &number_of))
        return NULL;
    struct job job = {.until = (size_t)view.len, .verify = verify};
    if (run(&job, &view, offset, walk_job))
        result = walk_result(&job.walk, number_of);
    walk_free(&job.walk);
    PyBuffer_Release(&view);
    return result;
}

PyObject *py_walk_stretch(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view, rows;
    PyObject *offset, *result = NULL;
    Py_ssize_t start, until;
    int verify, resync;
    if (!PyArg_ParseTuple(args, "y*Onnppw*", &view, &offset, &start, &until, &verify, &resync, &rows))
        return NULL;
    if (start < 0 || start > until || until > view.len) {
        PyErr_SetString(PyExc_ValueError, "a stretch lies within its buffer");
    } else {
        struct job job = {
            .start = (size_t)start, .until = (size_t)until, .verify = verify, .resync = resync};
        job.walk.position = job.start;
        job.walk.rows = rows.buf;
        job.walk.room = (size_t)rows.len / SEGLOG_ROW_SIZE;
        job.walk.are_borrowed = true;
        if (run(&job, &view, offset, walk_job))
            result = stretch_result(&job);
        walk_free(&job.walk);
    }
    PyBuffer_Release(&rows);
    PyBuffer_Release(&view);
    return result;
}

static PyObject *into_result(struct walk *walk, PyObject *number_of)
{
    if (!renumber(walk, number_of))
        return NULL;
    const struct window_keys *keys = walk->keys;
    PyObject *saying_more = list_of_positions(walk->saying_more, walk->more_count);
    PyObject *lost = keys ? list_of_positions(keys->lost, keys->lost_count) : PyList_New(0);
    PyObject *is_full = PyBool_FromLong(walk->is_full);
    if (saying_more && lost)
        return Py_BuildValue("(nNnNnNn)", (Py_ssize_t)walk->count, saying_more, (Py_ssize_t)walk->position,
                             is_full, (Py_ssize_t)(keys ? keys->keys.count : 0), lost,
                             (Py_ssize_t)(keys ? keys->with_crc : 0));
    Py_XDECREF(saying_more);
    Py_XDECREF(lost);
    Py_DECREF(is_full);
    return NULL;
}

/* Walks into memory that the caller has; `keys` is NULL if nobody wants them. */
static PyObject *walk_into(struct job *job, const Py_buffer *view, const Py_buffer *rows, const Py_buffer *keys,
                           PyObject *offset, PyObject *number_of)
{
    struct window_keys window = {.are_borrowed = true};
    PyObject *result = NULL;
    job->walk.position = job->start;
    job->walk.rows = rows->buf;
    job->walk.room = (size_t)rows->len / SEGLOG_ROW_SIZE;
    job->walk.are_borrowed = true;
    if (keys) {
        window.keys.rows = keys->buf;
        window.keys.room = (size_t)keys->len / SEGLOG_KEY_ROW_SIZE;
        job->walk.keys = &window;
    }
    if (run(job, view, offset, walk_job))
        result = into_result(&job->walk, number_of);
    walk_free(&job->walk);
    window_keys_free(&window);
    return result;
}

PyObject *py_walk_into(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view, rows, keys;
    PyObject *offset, *number_of, *keys_or_none, *result = NULL;
    Py_ssize_t start, until;
    int verify, tags;
    if (!PyArg_ParseTuple(args, "y*OnnpOw*Op", &view, &offset, &start, &until, &verify, &number_of, &rows,
                          &keys_or_none, &tags))
        return NULL;
    bool has_keys = keys_or_none != Py_None;
    if (start < 0 || start > until || until > view.len) {
        PyErr_SetString(PyExc_ValueError, "a stretch lies within its buffer");
    } else if (!has_keys || PyObject_GetBuffer(keys_or_none, &keys, PyBUF_WRITABLE) == 0) {
        struct job job = {.start = (size_t)start, .until = (size_t)until, .verify = verify};
        job.walk.tags = tags;
        result = walk_into(&job, &view, &rows, has_keys ? &keys : NULL, offset, number_of);
        if (has_keys)
            PyBuffer_Release(&keys);
    }
    PyBuffer_Release(&rows);
    PyBuffer_Release(&view);
    return result;
}

PyObject *py_find_record(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view;
    PyObject *offset, *result = NULL;
    Py_ssize_t start, until;
    if (!PyArg_ParseTuple(args, "y*Onn", &view, &offset, &start, &until))
        return NULL;
    if (until > view.len)
        until = view.len;
    struct job job = {.start = start > 0 ? (size_t)start : 0, .until = until > 0 ? (size_t)until : 0};
    if (run(&job, &view, offset, find_job))
        result = PyLong_FromSsize_t(job.begin < job.log.size ? (Py_ssize_t)job.begin : -1);
    PyBuffer_Release(&view);
    return result;
}
