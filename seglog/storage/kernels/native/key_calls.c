#include "key_calls.h"

#include <stdlib.h>
#include <string.h>

#include "../layout.h"
#include "guard.h"
#include "guarded_call.h"
#include "positions.h"
#include "rows.h"
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

static int64_t place_at(const uint8_t *places, size_t i)
{
    return row_i64(places + i * sizeof(int64_t));
}

static bool read_at(struct span log, int64_t first, int64_t place, struct record *record)
{
    settle_memory();
    uint64_t position = (uint64_t)place - (uint64_t)first;
    return place >= first && position <= log.size &&
           record_read(span_of(log.at + position, log.size - (size_t)position), place, record);
}

/* What cannot be read as a record may have any key. */
static void have_job(void *state)
{
    struct have_job *job = state;
    struct record record;
    for (size_t i = 0; i < job->count; i++)
        job->have[i] = !read_at(job->log, job->first, place_at(job->places, i), &record) ||
                       record_has_key(&record, job->key);
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

static bool take_seed(const Py_buffer *bytes, struct hash_seed *seed)
{
    if (bytes->len != sizeof *seed) {
        PyErr_SetString(PyExc_ValueError, "a seed has 16 bytes");
        return false;
    }
    memcpy(seed, bytes->buf, sizeof *seed);
    return true;
}

PyObject *py_key_digest(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer topic, key, bytes;
    struct hash_seed seed;
    PyObject *digest = NULL;
    if (!PyArg_ParseTuple(args, "y*y*y*", &topic, &key, &bytes))
        return NULL;
    if (take_seed(&bytes, &seed))
        digest = PyLong_FromUnsignedLongLong(key_digest(seed, span_of(topic.buf, (size_t)topic.len),
                                                        span_of(key.buf, (size_t)key.len)));
    PyBuffer_Release(&bytes);
    PyBuffer_Release(&key);
    PyBuffer_Release(&topic);
    return digest;
}

struct digests_job {
    struct span log;
    int64_t first;
    const uint8_t *places; /* int64, in the byte order of the machine */
    size_t count;
    int32_t hash;
    struct hash_seed seed;
    uint64_t *digests;
};

/* A record has as many keys of the hash as entries lead to it, one after the other; if not, nothing is known. */
static void digests_job(void *state)
{
    struct digests_job *job = state;
    struct record record;
    for (size_t i = 0, end; i < job->count; i = end) {
        int64_t place = place_at(job->places, i);
        for (end = i + 1; end < job->count && place_at(job->places, end) == place; end++)
            ;
        if (!read_at(job->log, job->first, place, &record) ||
            key_digests_of(&record, job->hash, job->seed, job->digests + i, end - i) != end - i)
            memset(job->digests + i, 0, (end - i) * sizeof *job->digests);
    }
}

PyObject *py_key_digests(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view, places, bytes;
    long long first;
    int hash;
    PyObject *result = NULL;
    struct digests_job job = {0};
    if (!PyArg_ParseTuple(args, "y*Ly*iy*", &view, &first, &places, &hash, &bytes))
        return NULL;
    job.log = span_of(view.buf, (size_t)view.len);
    job.first = first;
    job.places = places.buf;
    job.count = (size_t)places.len / sizeof(int64_t);
    job.hash = hash;
    if (take_seed(&bytes, &job.seed)) {
        job.digests = calloc(job.count + 1, sizeof *job.digests);
        if (!job.digests)
            PyErr_NoMemory();
        else if (call_guarded(&view, digests_job, &job))
            result = PyBytes_FromStringAndSize((const char *)job.digests,
                                               (Py_ssize_t)(job.count * sizeof *job.digests));
        free(job.digests);
    }
    PyBuffer_Release(&bytes);
    PyBuffer_Release(&places);
    PyBuffer_Release(&view);
    return result;
}
