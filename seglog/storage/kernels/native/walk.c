/* Walks from record to record while they are valid, and finds the next record that proves itself. */

#include "growable.h"
#include "python_api.h"
#include "record.h"

/* A queue that a walk has found. */
struct queue {
    struct span topic; /* a copy: the memory of the log may be released before the topic is used */
    uint64_t hash;
    uint32_t key_hash_before;
    int32_t id;
};

/* Queues, numbered in the order in which they appear: a hash table whose slots hold indexes of `list`, from 1.
 * A table of zeros is empty.
 */
struct queues {
    struct queue *list;
    uint8_t *unlisted; /* a topic while it is copied */
    uint32_t *slots;
    size_t count, room, slot_count;
};

/* The state of a walk; all zero before it.
 *
 * rows: `count` rows of SEGLOG_ROW_SIZE bytes, with queue numbers of `queues`. Freed with the walk, unless
 *     `are_borrowed`: then the memory has room for `room` rows, and the walk stops when it is full.
 * saying_more: positions of the records whose properties name further queues or batches.
 * position: where the walk stopped: no valid record is there, or `is_full`.
 * keys: if not NULL, gets the keys of the records, and tags if `tags`; the walk stops when it is full.
 */
struct walk {
    uint8_t *rows;
    size_t *saying_more;
    size_t count, room, more_count, more_room, position;
    struct queues queues;
    struct log_keys *keys;
    bool are_borrowed, tags, is_full;
};

#define FACTOR 0x9E3779B97F4A7C15u /* 2**64 over the golden ratio: odd, and its bits are well mixed */

enum { FIRST_SLOTS = 64 };

static uint64_t hash_seed;

/* Draws a seed, so that topics collide differently in every process, as keys of dicts do. */
bool queues_seed(void)
{
    PyObject *text = PyUnicode_FromString("seglog");
    Py_hash_t hash = text ? PyObject_Hash(text) : -1;
    Py_XDECREF(text);
    hash_seed = (uint64_t)hash;
    return hash != -1;
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * FACTOR;
    return hash ^ hash >> 32;
}

static uint64_t hash_of(struct span topic, int32_t queue_id)
{
    uint64_t hash = mix(hash_seed, (uint64_t)topic.size << 32 | (uint32_t)queue_id);
    uint64_t word;
    size_t at = 0;
    for (; topic.size - at >= sizeof word; at += sizeof word) {
        memcpy(&word, topic.at + at, sizeof word);
        hash = mix(hash, word);
    }
    word = 0;
    memcpy(&word, topic.at + at, topic.size - at);
    return mix(hash, word);
}

static bool is_queue(const struct queue *queue, struct span topic, int32_t id, uint64_t hash)
{
    return queue->hash == hash && queue->id == id && spans_are_equal(queue->topic, topic);
}

static uint32_t *free_slot(const struct queues *queues, uint64_t hash)
{
    size_t mask = queues->slot_count - 1;
    size_t slot = hash & mask;
    while (queues->slots[slot])
        slot = (slot + 1) & mask;
    return &queues->slots[slot];
}

/* Doubles the table; at most half of its slots are ever used. */
static bool grow(struct queues *queues)
{
    size_t slot_count = queues->slot_count ? 2 * queues->slot_count : FIRST_SLOTS;
    struct queue *list = realloc(queues->list, slot_count / 2 * sizeof *list);
    if (!list)
        return false;
    queues->list = list;
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (!slots)
        return false;
    free(queues->slots);
    queues->slots = slots;
    queues->slot_count = slot_count;
    queues->room = slot_count / 2;
    for (size_t number = 0; number < queues->count; number++)
        *free_slot(queues, queues->list[number].hash) = (uint32_t)(number + 1);
    return true;
}

static int32_t find(const struct queues *queues, struct span topic, int32_t queue_id, uint64_t hash)
{
    size_t mask = queues->slot_count - 1;
    for (size_t slot = hash & mask; queues->slots[slot]; slot = (slot + 1) & mask) {
        uint32_t number = queues->slots[slot] - 1;
        if (is_queue(&queues->list[number], topic, queue_id, hash))
            return (int32_t)number;
    }
    return -1;
}

static bool copy_topic(struct queues *queues, struct span topic)
{
    queues->unlisted = malloc(topic.size ? topic.size : 1);
    if (!queues->unlisted)
        return false;
    settle_memory();
    memcpy(queues->unlisted, topic.at, topic.size);
    return true;
}

/* Returns the number of a queue, a new number at its first record; -1 without memory. */
static int32_t queues_number(struct queues *queues, struct span topic, int32_t queue_id)
{
    uint64_t hash = hash_of(topic, queue_id);
    if (queues->slot_count) {
        int32_t number = find(queues, topic, queue_id, hash);
        if (number >= 0)
            return number;
    }
    if (queues->count >= INT32_MAX || (queues->count == queues->room && !grow(queues)))
        return -1;
    if (!copy_topic(queues, topic))
        return -1;
    struct span copy = span_of(queues->unlisted, topic.size);
    struct queue queue = {copy, hash, key_hash_before(copy), queue_id};
    queues->list[queues->count] = queue;
    queues->unlisted = NULL;
    *free_slot(queues, hash) = (uint32_t)++queues->count;
    return (int32_t)(queues->count - 1);
}

static void queues_free(struct queues *queues)
{
    for (size_t number = 0; number < queues->count; number++)
        free((void *)(uintptr_t)queues->list[number].topic.at);
    free(queues->unlisted);
    free(queues->list);
    free(queues->slots);
}

static bool make_room(struct walk *walk)
{
    return growable_reserve(&walk->rows, walk->count, &walk->room, SEGLOG_ROW_SIZE) &&
           growable_reserve(&walk->saying_more, walk->more_count, &walk->more_room,
                            sizeof *walk->saying_more);
}

static void write_row(uint8_t *row, const struct record *record, int64_t phy_offset, int32_t queue,
                      int64_t tags_code)
{
    set_row_i64(row + SEGLOG_ROW_PHY_OFFSET_AT, phy_offset);
    set_row_i64(row + SEGLOG_ROW_QUEUE_OFFSET_AT, record->queue_offset);
    set_row_i64(row + SEGLOG_ROW_TAGS_CODE_AT, tags_code);
    set_row_i64(row + SEGLOG_ROW_STORE_TIMESTAMP_MS_AT, record->store_timestamp_ms);
    set_row_i32(row + SEGLOG_ROW_SIZE_BYTES_AT, (int32_t)record->bytes.size);
    set_row_i32(row + SEGLOG_ROW_QUEUE_AT, queue);
    set_row_i32(row + SEGLOG_ROW_SYS_FLAG_AT, record->sys_flag);
}

static enum noted add(struct walk *walk, const struct record *record, int64_t phy_offset)
{
    struct span tag;
    int32_t queue = queues_number(&walk->queues, record->topic, record->queue_id);
    if (queue < 0 || !make_room(walk))
        return NO_MEMORY;
    if (walk->keys) {
        struct index_values values = index_values_of(record->properties);
        enum noted noted =
            log_keys_note(walk->keys, record, &values, walk->queues.list[queue].key_hash_before,
                          walk->position, phy_offset, walk->tags);
        if (noted != NOTED)
            return noted;
        tag = values.tags;
    } else {
        tag = property_value(record->properties, TEXT(SEGLOG_TAGS "\001"));
    }
    write_row(walk->rows + walk->count++ * SEGLOG_ROW_SIZE, record, phy_offset, queue,
              unit_tags_code(record, tag));
    if (properties_hold(record->properties, TEXT(SEGLOG_INNER_NAMES)))
        walk->saying_more[walk->more_count++] = walk->position;
    return NOTED;
}

static bool has_no_row(const struct walk *walk)
{
    return walk->are_borrowed && walk->count == walk->room;
}

/* Walks from walk->position up to the first record at or behind `until`; returns false without memory. */
static bool walk_on(struct walk *walk, struct span log, int64_t phy_offset, size_t until, bool verify)
{
    struct record record;
    while (walk->position < until) {
        walk->is_full = has_no_row(walk);
        if (walk->is_full || !record_read_at(log, walk->position, phy_offset, &record) ||
            (verify && !record_verifies(&record)))
            break;
        enum noted noted = add(walk, &record, phy_offset + (int64_t)walk->position);
        walk->is_full = noted == NO_ROOM;
        if (noted != NOTED)
            return walk->is_full;
        walk->position += record.bytes.size;
    }
    return true;
}

/* Replaces our queue numbers by those of the caller. */
static void walk_renumber(struct walk *walk, const int32_t *numbers)
{
    for (size_t i = 0; i < walk->count; i++) {
        uint8_t *at = walk->rows + i * SEGLOG_ROW_SIZE + SEGLOG_ROW_QUEUE_AT;
        set_row_i32(at, numbers[row_i32(at)]);
    }
}

static void walk_free(struct walk *walk)
{
    if (!walk->are_borrowed)
        free(walk->rows);
    free(walk->saying_more);
    queues_free(&walk->queues);
}

/* Returns the next byte with which both magic numbers begin; text never has it. */
static const uint8_t *next_magic_byte(struct span bytes)
{
    return bytes.size ? memchr(bytes.at, SEGLOG_MAGIC_V1 >> 24, bytes.size) : NULL;
}

/* Returns the position of the next record between `start` and `until` that proves itself; the size of the log if
 * there is none. */
static size_t find_record(struct span log, int64_t phy_offset, size_t start, size_t until)
{
    struct record record;
    size_t end = log.size < SEGLOG_MIN_RECORD_BYTES ? 0 : log.size - SEGLOG_MIN_RECORD_BYTES + 1;
    if (until < end)
        end = until;
    while (start < end) {
        const uint8_t *magic = next_magic_byte(span_of(log.at + start + SEGLOG_MAGIC_AT, end - start));
        if (!magic)
            break;
        start = (size_t)(magic - log.at) - SEGLOG_MAGIC_AT;
        if (record_read_at(log, start, phy_offset, &record) && record_verifies(&record))
            return start;
        start++;
    }
    return log.size;
}

/* One walk or search; `begin` is its start, or the size of the log if no record was found to start at. */
struct walk_job {
    struct walk walk;
    struct span log;
    int64_t phy_offset;
    size_t start, until, begin;
    bool verify, resync, has_memory;
};

static void walk_job(void *state)
{
    struct walk_job *job = state;
    job->begin = job->start;
    if (job->resync)
        job->begin = find_record(job->log, job->phy_offset, job->start, job->until);
    job->walk.position = job->begin;
    job->has_memory = walk_on(&job->walk, job->log, job->phy_offset, job->until, job->verify);
}

static void find_job(void *state)
{
    struct walk_job *job = state;
    job->begin = find_record(job->log, job->phy_offset, job->start, job->until);
}

/* Does the work; if no record can have the physical offset, it ends at its start. */
static bool run(struct walk_job *job, const Py_buffer *view, PyObject *offset, void (*work)(void *state))
{
    bool is_possible;
    job->log = span_in(view);
    job->has_memory = true;
    job->begin = job->log.size;
    if (!py_to_phy_offset(offset, &job->phy_offset, &is_possible))
        return false;
    if (!is_possible)
        return true;
    if (!call_guarded(view, work, job))
        return false;
    if (!job->has_memory)
        PyErr_NoMemory();
    return job->has_memory;
}

/* Returns the caller's number for a queue, -1 with an exception. */
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

/* Gets the caller's numbers for all queues, in the order in which they appeared. */
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

static PyObject *queue_at(const void *queues, size_t i)
{
    const struct queue *queue = &((const struct queues *)queues)->list[i];
    return Py_BuildValue("(y#i)", (const char *)queue->topic.at, (Py_ssize_t)queue->topic.size,
                         (int)queue->id);
}

static PyObject *walk_result(struct walk *walk, PyObject *number_of)
{
    if (!renumber(walk, number_of))
        return NULL;
    Py_ssize_t size = (Py_ssize_t)(walk->count * SEGLOG_ROW_SIZE);
    return Py_BuildValue("(NNn)", PyBytes_FromStringAndSize((const char *)walk->rows, size),
                         list_of_positions(walk->saying_more, walk->more_count), (Py_ssize_t)walk->position);
}

static PyObject *stretch_result(const struct walk_job *job)
{
    const struct walk *walk = &job->walk;
    return Py_BuildValue("(nNnnN)", (Py_ssize_t)walk->count,
                         list_of_positions(walk->saying_more, walk->more_count), (Py_ssize_t)job->begin,
                         (Py_ssize_t)walk->position, list_of(walk->queues.count, queue_at, &walk->queues));
}

PyObject *py_walk(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view;
    PyObject *offset, *number_of, *result = NULL;
    int verify;
    if (!PyArg_ParseTuple(args, "y*OpO", &view, &offset, &verify, &number_of))
        return NULL;
    struct walk_job job = {.until = (size_t)view.len, .verify = verify};
    if (run(&job, &view, offset, walk_job))
        result = walk_result(&job.walk, number_of);
    walk_free(&job.walk);
    PyBuffer_Release(&view);
    return result;
}

/* Lets the walk write its rows to memory of the caller. */
static void borrow(struct walk_job *job, const Py_buffer *rows)
{
    job->walk.position = job->start;
    job->walk.rows = rows->buf;
    job->walk.room = (size_t)rows->len / SEGLOG_ROW_SIZE;
    job->walk.are_borrowed = true;
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
        struct walk_job job = {
            .start = (size_t)start, .until = (size_t)until, .verify = verify, .resync = resync};
        borrow(&job, &rows);
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
    static const struct log_keys nothing;
    const struct log_keys *keys = walk->keys ? walk->keys : &nothing;
    if (!renumber(walk, number_of))
        return NULL;
    return Py_BuildValue("(nNnNnNnn)", (Py_ssize_t)walk->count,
                         list_of_positions(walk->saying_more, walk->more_count), (Py_ssize_t)walk->position,
                         PyBool_FromLong(walk->is_full), (Py_ssize_t)keys->count,
                         list_of_positions(keys->lost, keys->lost_count), (Py_ssize_t)keys->with_crc,
                         (Py_ssize_t)keys->placeholders);
}

/* Walks with rows in memory of the caller; `keys` is NULL if keys are not wanted. */
static PyObject *walk_into(struct walk_job *job, const Py_buffer *view, const Py_buffer *rows,
                           const Py_buffer *keys, PyObject *offset, PyObject *number_of)
{
    struct log_keys window = {.are_borrowed = true};
    PyObject *result = NULL;
    borrow(job, rows);
    if (keys) {
        window.rows = keys->buf;
        window.room = (size_t)keys->len / SEGLOG_KEY_ROW_SIZE;
        job->walk.keys = &window;
    }
    if (run(job, view, offset, walk_job))
        result = into_result(&job->walk, number_of);
    walk_free(&job->walk);
    log_keys_free(&window);
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
        struct walk_job job = {.start = (size_t)start, .until = (size_t)until, .verify = verify};
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
    struct walk_job job = {.start = start > 0 ? (size_t)start : 0, .until = until > 0 ? (size_t)until : 0};
    if (run(&job, &view, offset, find_job))
        result = PyLong_FromSsize_t(job.begin < job.log.size ? (Py_ssize_t)job.begin : -1);
    PyBuffer_Release(&view);
    return result;
}
