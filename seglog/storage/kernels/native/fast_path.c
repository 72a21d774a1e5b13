/* Puts of usual messages to queues that have room, without a call into Python. */

#include "fast_path.h"
#include "record.h"

#include <time.h>

enum { FIRST_ROOM = 64, KEPT_ROOM = 4096, FIRST_BYTES = 4096, KEPT_BYTES = 1 << 20 };

void batch_free(struct batch *batch)
{
    PyMem_Free(batch->list);
    PyMem_Free(batch->properties);
    memset(batch, 0, sizeof *batch);
}

void batch_clear(struct batch *batch)
{
    if (batch->room > KEPT_ROOM || batch->properties_room > KEPT_BYTES)
        batch_free(batch);
    batch->count = batch->properties_size = 0;
}

struct message *batch_add(struct batch *batch)
{
    if (batch->count == batch->room) {
        size_t room = batch->room ? 2 * batch->room : FIRST_ROOM;
        struct message *list = PyMem_Realloc(batch->list, room * sizeof *list);
        if (!list)
            return NULL;
        batch->list = list;
        batch->room = room;
    }
    struct message *message = &batch->list[batch->count++];
    memset(message, 0, sizeof *message);
    message->properties_at = batch->properties_size;
    return message;
}

/* Returns the properties of a message; the span is valid until the batch gets more properties. */
static struct span batch_properties(const struct batch *batch, const struct message *message)
{
    if (!message->properties_size)
        return span_of(NULL, 0);
    return span_of(batch->properties + message->properties_at, message->properties_size);
}

bool batch_reserve(struct batch *batch, size_t size)
{
    size_t needed = batch->properties_size + size;
    if (needed <= batch->properties_room)
        return true;
    size_t room = batch->properties_room ? batch->properties_room : FIRST_BYTES;
    while (room < needed)
        room *= 2;
    uint8_t *properties = PyMem_Realloc(batch->properties, room);
    if (!properties)
        return false;
    batch->properties = properties;
    batch->properties_room = room;
    return true;
}

static void add_bytes(struct batch *batch, struct span bytes)
{
    memcpy(batch->properties + batch->properties_size, bytes.at, bytes.size);
    batch->properties_size += bytes.size;
}

/* Assigns all bytes that were added since batch_add to the last message. */
static void take_in(struct batch *batch)
{
    struct message *message = &batch->list[batch->count - 1];
    message->properties_size = batch->properties_size - message->properties_at;
}

bool batch_raw_properties(struct batch *batch, struct span properties)
{
    if (properties.size > SEGLOG_MAX_PROPERTIES_BYTES || !batch_reserve(batch, properties.size))
        return false;
    if (properties.size)
        add_bytes(batch, properties);
    take_in(batch);
    return true;
}

static bool has_separator(struct span text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.at[i] == SEGLOG_NAME_END || text.at[i] == SEGLOG_ENTRY_END)
            return true;
    return false;
}

static bool add_entry(struct batch *batch, struct span name, struct span value)
{
    if (name.size == 0 || name.size + value.size > SEGLOG_MAX_PROPERTIES_BYTES || has_separator(name) ||
        has_separator(value) || !batch_reserve(batch, name.size + value.size + 2))
        return false;
    add_bytes(batch, name);
    batch->properties[batch->properties_size++] = SEGLOG_NAME_END;
    add_bytes(batch, value);
    batch->properties[batch->properties_size++] = SEGLOG_ENTRY_END;
    return true;
}

static bool add_entries(struct batch *batch, PyObject *properties)
{
    PyObject *key, *item;
    Py_ssize_t at = 0;
    size_t start = batch->properties_size;
    if (!PyDict_CheckExact(properties))
        return false;
    /* Runs no Python code, so that the dict cannot change during the loop. */
    while (PyDict_Next(properties, &at, &key, &item)) {
        struct span name, value;
        if (!py_to_text(key, &name) || !py_to_text(item, &value) ||
            spans_are_equal(name, TEXT(SEGLOG_TAGS)) || spans_are_equal(name, TEXT(SEGLOG_KEYS)) ||
            !add_entry(batch, name, value))
            return false;
    }
    return batch->properties_size == start ||
           !properties_hold(span_of(batch->properties + start, batch->properties_size - start),
                            TEXT(SEGLOG_INNER_NAMES));
}

bool batch_put_properties(struct batch *batch, PyObject *tags, PyObject *keys, PyObject *properties)
{
    struct span text;
    if (is_given(properties) && !add_entries(batch, properties))
        return false;
    if (is_given(tags)) {
        if (!py_to_text(tags, &text) || !add_entry(batch, TEXT(SEGLOG_TAGS), text))
            return false;
        batch->list[batch->count - 1].tags_code = (int32_t)java_hash(0, text);
    }
    if (is_given(keys) && (!py_to_text(keys, &text) || !add_entry(batch, TEXT(SEGLOG_KEYS), text)))
        return false;
    take_in(batch);
    return true;
}

bool batch_take_body(PyObject *value, struct span *body)
{
    if (py_to_bytes(value, body))
        return true;
    Py_buffer view;
    if (!PyMemoryView_Check(value) || PyObject_GetBuffer(value, &view, PyBUF_SIMPLE) < 0)
        return false;
    bool is_of_bytes = view.itemsize == 1;
    *body = span_in(&view);
    PyBuffer_Release(&view); /* the memoryview, which the caller holds, keeps the memory alive */
    return is_of_bytes;
}

enum {
    MOST_QUEUES = 1024,
    MS_PER_S = 1000,
    NS_PER_MS = 1000000,
    LEAST_PWRITE = 48 << 10, /* below it the map takes less, where memory is there: perf/LIMITS.md */
    ARENA_BYTES = 1 << 20
};

static PyTypeObject *topic_type;
static PyObject *now_name;

/* Looks up a topic, if it is not the same object as the last one. */
static bool look_up(FastPath *path, PyObject *name)
{
    PyObject *found = PyUnicode_CheckExact(name) ? PyDict_GetItemWithError(path->topics, name) : NULL;
    if (!found)
        return false;
    PyObject *old = path->last_name;
    path->last_name = Py_NewRef(name);
    path->last_topic = (FastTopic *)found;
    Py_XDECREF(old); /* last: it may free the old name, and run Python code */
    return true;
}

enum outcome fast_path_find(FastPath *path, struct append *append)
{
    if (append->topic != path->last_name && (path->is_closed || !look_up(path, append->topic)))
        return path->is_closed || PyUnicode_CheckExact(append->topic) ? NO_WINDOW : FALLBACK;
    const FastTopic *topic = path->last_topic;
    size_t queue_id = (size_t)(uint32_t)append->values.queue_id; /* negative ids become larger than any count
    */
    if (queue_id >= topic->count || !topic->queues[queue_id])
        return NO_WINDOW;
    append->queue = topic->queues[queue_id];
    append->values.topic = span_of(topic->name, topic->name_size);
    return DONE;
}

static bool ask_clock(PyObject *clock, int64_t *now_ms)
{
    PyObject *answer = PyObject_CallMethodObjArgs(clock, now_name, NULL);
    bool is_taken = answer && py_to_i64(answer, now_ms);
    Py_XDECREF(answer);
    return is_taken;
}

static bool read_clock(const FastPath *path, struct append *append, bool is_born)
{
    if (!path->clock) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        append->store_timestamp_ms = (int64_t)now.tv_sec * MS_PER_S + now.tv_nsec / NS_PER_MS;
    } else if (!ask_clock(path->clock, &append->store_timestamp_ms)) {
        return false;
    }
    if (!is_born)
        append->values.born_timestamp_ms = append->store_timestamp_ms;
    return true;
}

/* Whether the check that the file was not cut calls Python. */
static bool is_asked_in_python(const struct write_window *window)
{
    return window->length && window->descriptor < 0;
}

/* Whether neither file was cut. */
static bool are_checked(LogTail *log, QueueTail *queue, int64_t now_ms, bool is_sync)
{
    return ((!is_sync && window_was_checked(&log->window, now_ms)) ||
            window_check(&log->window, now_ms, is_sync)) &&
           ((!is_sync && window_was_checked(&queue->window, now_ms)) ||
            window_check(&queue->window, now_ms, is_sync));
}

enum outcome fast_path_prepare(FastPath *path, struct append *append, bool is_born, bool is_sync)
{
    LogTail *log = path->log;
    QueueTail *queue = append->queue;
    bool runs_others = path->clock || is_asked_in_python(&log->window) || is_asked_in_python(&queue->window);
    int64_t end = log->end_phy_offset;
    if (runs_others)
        Py_INCREF((PyObject *)queue); /* Python code may remove the queue from its topic */
    enum outcome outcome = DONE;
    if (!read_clock(path, append, is_born))
        outcome = FAILED;
    else if (!are_checked(log, queue, append->store_timestamp_ms, is_sync))
        outcome = FALLBACK;
    else if (path->clock && end != log->end_phy_offset)
        outcome = FALLBACK; /* another message was appended meanwhile: the time read may be before its time */
    if (!runs_others)
        return outcome;
    Py_DECREF((PyObject *)queue);
    return outcome == DONE ? fast_path_find(path, append) : outcome; /* again: the queue may have been replaced */
}

/* Returns the size of all records; 0 if one of them is unusual. */
static size_t measure(FastPath *path, const struct append *append)
{
    const struct record_values *values = &append->values;
    size_t total = 0, bare_size = record_bare_size(values);
    if (!record_shares_usual(values))
        return 0;
    for (size_t i = 0; i < path->batch.count; i++) {
        struct message *message = &path->batch.list[i];
        struct span properties = batch_properties(&path->batch, message);
        if (message->body.size > path->max_body_bytes ||
            !record_owns_usual(message->body, properties, values->record_crc))
            return 0;
        message->record_size = bare_size + message->body.size + properties.size;
        total += message->record_size;
    }
    return total;
}

/* Writes the records in order: into the map, or into an arena that is written by pwrite whenever it is full.
 * Returns false if a pwrite failed; then some records may be in the file, but no tail has moved.
 */
static bool write_records(const FastPath *path, const struct append *append, uint8_t *arena)
{
    const struct record_values *values = &append->values;
    struct record_head head;
    record_head_make(values, &head);
    struct record_own own = {
        .topic = values->topic,
        .queue_offset = append->queue->max_offset,
        .phy_offset = path->log->end_phy_offset,
        .born_timestamp_ms = values->born_timestamp_ms,
        .store_timestamp_ms = append->store_timestamp_ms,
        .queue_id = values->queue_id,
    };
    const struct write_window *window = &path->log->window;
    int64_t start = own.phy_offset;
    uint8_t *target = arena ? arena : window_at(window, start);
    for (size_t i = 0; i < path->batch.count; i++) {
        const struct message *message = &path->batch.list[i];
        size_t waiting = (size_t)(own.phy_offset - start);
        if (arena && waiting + message->record_size > ARENA_BYTES) {
            if (!window_pwrite_run(window, start, arena, waiting))
                return false;
            start = own.phy_offset;
            target = arena;
        }
        own.body = message->body;
        own.properties = batch_properties(&path->batch, message);
        own.flag = message->flag;
        record_write(&head, &own, message->record_size, target);
        target += message->record_size;
        own.phy_offset += (int64_t)message->record_size;
        own.queue_offset++;
    }
    if (!arena)
        return true;
    size_t waiting = (size_t)(own.phy_offset - start);
    return path->batch.count == 1 ? window_pwrite_one(window, start, arena, waiting)
                                  : window_pwrite_run(window, start, arena, waiting);
}

/* Writes the units and moves the tails, after the records: a reader that follows a queue must find the record of
 * every unit. */
static void publish(const FastPath *path, const struct append *append)
{
    QueueTail *queue = append->queue;
    LogTail *log = path->log;
    int64_t at = log->end_phy_offset, last = at, queue_offset = queue->max_offset, keyed_end = log->keyed_end;
    __atomic_thread_fence(__ATOMIC_RELEASE); /* other processes that map the files see records before units */
    for (size_t i = 0; i < path->batch.count; i++) {
        const struct message *message = &path->batch.list[i];
        unit_write(window_at(&queue->window, queue_offset++ * UNIT_BYTES), at, message->record_size,
                   message->tags_code);
        last = at;
        at += (int64_t)message->record_size;
        if (message->properties_size)
            keyed_end = at;
    }
    /* The queue's tail before the log's: a thread that reads the log's end finds the queue at least as far. */
    log->keyed_end = keyed_end;
    queue->max_phy_offset = at;
    queue->max_offset = queue_offset;
    log_advance(log, last, at, append->store_timestamp_ms);
}

uint8_t *fast_path_scratch(FastPath *path, size_t size)
{
    if (path->scratch_room < size) {
        uint8_t *scratch = PyMem_Realloc(path->scratch, size);
        if (!scratch)
            return NULL;
        path->scratch = scratch;
        path->scratch_room = size;
    }
    return path->scratch;
}

/* Whether to write records by pwrite: SYNC appends, and large batches, for which one more copy takes less time
 * than the page faults of a map.
 */
static bool goes_by_pwrite(const FastPath *path, size_t size, bool is_sync)
{
    if (path->log->window.descriptor < 0 || (!is_sync && size < LEAST_PWRITE))
        return false;
    if (path->batch.count == 1)
        return is_sync && size <= ARENA_BYTES;
    for (size_t i = 0; i < path->batch.count; i++)
        if (path->batch.list[i].record_size > ARENA_BYTES)
            return false;
    return true;
}

/* Writes records by pwrite. The arena is used within this call only: every acknowledged record is in the file. */
static bool pwrite_records(FastPath *path, const struct append *append, size_t size, bool is_sync)
{
    struct write_window *window = &path->log->window;
    /* With a descriptor the check is a system call, and runs no Python code. */
    if (!is_sync && !window_check(window, append->store_timestamp_ms, true))
        return false;
    uint8_t *arena = fast_path_scratch(path, size < ARENA_BYTES ? size : ARENA_BYTES);
    if (!arena || !write_records(path, append, arena))
        return false;
    path->log->past_map_bytes += (long long)size;
    return true;
}

enum outcome fast_path_write(FastPath *path, const struct append *append, bool is_sync)
{
    LogTail *log = path->log;
    QueueTail *queue = append->queue;
    size_t size = measure(path, append);
    if (!size || size > INT32_MAX)
        return FALLBACK;
    int64_t end = log->end_phy_offset, units = queue->max_offset * UNIT_BYTES;
    /* All checks before the first write: a refused append leaves no bytes. */
    if (log->is_shut || end >= log->wake_allocator_at ||
        !window_holds(&log->window, end, end + (int64_t)size) ||
        !window_holds(&queue->window, units, units + (int64_t)path->batch.count * UNIT_BYTES))
        return NO_WINDOW;
    if (!goes_by_pwrite(path, size, is_sync))
        write_records(path, append, NULL);
    else if (!pwrite_records(path, append, size, is_sync))
        return FALLBACK;
    publish(path, append);
    return DONE;
}

static FastTopic *new_topic(PyObject *name)
{
    struct span text;
    if (!py_to_text(name, &text) || text.size > SEGLOG_MAX_TOPIC_BYTES) {
        PyErr_SetString(PyExc_ValueError, "such a topic has no fast path");
        return NULL;
    }
    FastTopic *topic = object_new(topic_type);
    if (topic) {
        topic->name_size = text.size;
        memcpy(topic->name, text.at, text.size);
    }
    return topic;
}

static void topic_dealloc(PyObject *self)
{
    FastTopic *topic = (FastTopic *)self;
    for (size_t i = 0; i < topic->count; i++)
        Py_XDECREF((PyObject *)topic->queues[i]);
    PyMem_Free(topic->queues);
    object_free(self);
}

static int add_queue(FastTopic *topic, size_t queue_id, QueueTail *queue)
{
    if (queue_id >= topic->count) {
        QueueTail **queues = PyMem_Realloc(topic->queues, (queue_id + 1) * sizeof(QueueTail *));
        if (!queues) {
            PyErr_NoMemory();
            return -1;
        }
        memset(queues + topic->count, 0, (queue_id + 1 - topic->count) * sizeof(QueueTail *));
        topic->queues = queues;
        topic->count = queue_id + 1;
    }
    PyObject *old = (PyObject *)topic->queues[queue_id];
    topic->queues[queue_id] = (QueueTail *)Py_NewRef((PyObject *)queue);
    Py_XDECREF(old);
    return 0;
}

int fast_path_add_queue(FastPath *path, PyObject *name, int32_t queue_id, QueueTail *queue)
{
    if (queue_id < 0 || queue_id >= MOST_QUEUES)
        return 0; /* the Python twin serves it: an array by queue id must not get that long */
    PyObject *topic = Py_XNewRef(PyDict_GetItemWithError(path->topics, name));
    if (!topic) {
        topic = (PyObject *)new_topic(name);
        if (!topic || PyDict_SetItem(path->topics, name, topic) < 0) {
            Py_XDECREF(topic);
            return -1;
        }
    }
    int result = add_queue((FastTopic *)topic, (size_t)queue_id, queue);
    Py_DECREF(topic);
    return result;
}

void fast_path_forget(FastPath *path)
{
    Py_CLEAR(path->last_name);
    if (path->topics)
        PyDict_Clear(path->topics);
}

static PyType_Slot slots[] = {
    {Py_tp_dealloc, (void *)topic_dealloc},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "seglog.storage.kernels._native.LaneTopic",
    .basicsize = sizeof(FastTopic),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

bool fast_topic_prepare(void)
{
    now_name = PyUnicode_InternFromString("now_ms");
    topic_type = type_add(NULL, &spec, NULL);
    return now_name && topic_type;
}
