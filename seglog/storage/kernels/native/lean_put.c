/* MessageStore.put of one usual message that waits for nothing, as most puts: in one pass and without a batch.
 * All other puts are left to fast_path_put_any().
 */

#include "fast_path.h"
#include "put_result.h"
#include "record.h"

/* The named parameters, the most frequent ones first. */
enum named { QUEUE_ID, TAGS, KEYS, PROPERTIES, FLAG, DURABILITY, NAMED };

/* The arguments of one call, borrowed; missing ones are NULL. */
struct put_call {
    PyObject *topic, *body, *named[NAMED];
    PyObject *durability; /* the durability that the put reaches */
};

/* One message in stored form. Its properties are encoded in the memory of the batch. */
struct put_message {
    struct span body, properties;
    int64_t tags_code;
    int32_t flag;
};

static PyObject *names_of_arguments[NAMED];

bool lean_put_prepare(void)
{
    static const char *const texts[NAMED] = {
        [QUEUE_ID] = "queue_id",     [TAGS] = "tags", [KEYS] = "keys",
        [PROPERTIES] = "properties", [FLAG] = "flag", [DURABILITY] = "durability",
    };
    return intern(names_of_arguments, texts, NAMED);
}

static bool take_named(struct put_call *call, PyObject *const *values, PyObject *names)
{
    Py_ssize_t count = PyTuple_Size(names);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        int number = 0;
        while (number < NAMED && names_of_arguments[number] != name)
            number++;
        if (number == NAMED)
            return false;
        call->named[number] = values[i];
    }
    return true;
}

#define EACH_BYTE(byte) (0x0101010101010101u * (byte))

enum { WORD = 8, LEAST_BYTE = 3 };

/* Returns non-zero if one of eight bytes is below LEAST_BYTE: 0, or the end of a name or an entry. */
static uint64_t has_special(uint64_t word)
{
    _Static_assert(SEGLOG_NAME_END == 1 && SEGLOG_ENTRY_END == 2, "the bytes below LEAST_BYTE");
    return (word - EACH_BYTE(LEAST_BYTE)) & ~word & EACH_BYTE(0x80);
}

static uint64_t copy_word(uint8_t *target, const uint8_t *source)
{
    uint64_t word;
    memcpy(&word, source, WORD);
    memcpy(target, &word, WORD);
    return has_special(word);
}

/* Copies a text; returns false if it has a separator, or a 0, which may look like a torn write. */
static bool copy_text(uint8_t *target, struct span text)
{
    uint64_t found = 0;
    if (text.size < WORD) {
        for (size_t i = 0; i < text.size; i++) {
            target[i] = text.at[i];
            found |= text.at[i] < LEAST_BYTE;
        }
        return !found;
    }
    size_t last = text.size - WORD; /* the last word overlaps the one before it, so no byte is left over */
    for (size_t at = 0; at < last; at += WORD)
        found |= copy_word(target + at, text.at + at);
    return !(found | copy_word(target + last, text.at + last));
}

/* Adds an entry of properties to the memory of the batch; the batch has no messages here. */
static bool add_entry(struct batch *batch, struct span name, struct span value)
{
    size_t size = name.size + value.size + 2;
    if (name.size > SEGLOG_MAX_PROPERTIES_BYTES || value.size > SEGLOG_MAX_PROPERTIES_BYTES ||
        !batch_reserve(batch, size))
        return false;
    uint8_t *at = batch->properties + batch->properties_size;
    bool is_usual = copy_text(at, name) && copy_text(at + name.size + 1, value);
    at[name.size] = SEGLOG_NAME_END;
    at[size - 1] = SEGLOG_ENTRY_END;
    batch->properties_size += size;
    return is_usual;
}

/* Whether an application may use the name: not TAGS or KEYS, and no end like that of the CRC property. */
static bool is_own_name(struct span name)
{
    static const char crc_name[] = SEGLOG_CRC_NAME;
    enum { CRC_NAME_BYTES = sizeof crc_name - 2 }; /* without its last character and the NUL */
    return name.size && !spans_are_equal(name, TEXT(SEGLOG_TAGS)) &&
           !spans_are_equal(name, TEXT(SEGLOG_KEYS)) &&
           (name.size < CRC_NAME_BYTES ||
            memcmp(name.at + name.size - CRC_NAME_BYTES, crc_name, CRC_NAME_BYTES) != 0);
}

static bool add_properties(struct batch *batch, PyObject *properties)
{
    PyObject *key, *item;
    struct span name, value;
    Py_ssize_t at = 0;
    if (!PyDict_CheckExact(properties))
        return false;
    while (PyDict_Next(properties, &at, &key, &item))
        if (!py_to_text(key, &name) || !py_to_text(item, &value) || !is_own_name(name) ||
            !add_entry(batch, name, value))
            return false;
    return !properties_hold(span_of(batch->properties, batch->properties_size), TEXT(SEGLOG_INNER_NAMES));
}

static bool take_properties(struct batch *batch, const struct put_call *call, struct put_message *message)
{
    struct span text;
    PyObject *const *named = call->named;
    batch_clear(batch);
    if (is_given(named[PROPERTIES]) && !add_properties(batch, named[PROPERTIES]))
        return false;
    if (is_given(named[TAGS])) {
        if (!py_to_text(named[TAGS], &text) || !add_entry(batch, TEXT(SEGLOG_TAGS), text))
            return false;
        message->tags_code = (int32_t)java_hash(0, text);
    }
    if (is_given(named[KEYS]) &&
        (!py_to_text(named[KEYS], &text) || !add_entry(batch, TEXT(SEGLOG_KEYS), text)))
        return false;
    message->properties = span_of(batch->properties, batch->properties_size);
    return true;
}

/* Reads the durability; returns false if the put must wait for the disk. */
static bool take_durability(FastPath *path, struct put_call *call)
{
    PyObject *durability = call->named[DURABILITY], *sync = path->known[SYNC];
    call->durability = is_given(durability) ? durability : path->known[USUAL_DURABILITY];
    return call->durability != sync && Py_IS_TYPE(call->durability, Py_TYPE(sync));
}

static bool take_message(FastPath *path, const struct put_call *call, struct put_message *message)
{
    PyObject *flag = call->named[FLAG];
    message->properties = span_of(NULL, 0);
    message->tags_code = 0;
    message->flag = 0;
    if (!PyBytes_CheckExact(call->body) || !py_to_bytes(call->body, &message->body) ||
        message->body.size > path->max_body_bytes || message->body.size > INT32_MAX / 2 ||
        (flag && !py_to_i32(flag, &message->flag)))
        return false;
    if (!call->named[TAGS] && !call->named[KEYS] && !call->named[PROPERTIES])
        return true;
    return take_properties(&path->batch, call, message) &&
           message->properties.size <= SEGLOG_MAX_PROPERTIES_BYTES - SEGLOG_CRC_PROPERTY_BYTES;
}

/* Writes the record, then the unit, then moves the tails and fills the result; returns false without room. */
static bool write_one(FastPath *path, const struct append *append, const struct put_message *message,
                      PutResult *result)
{
    LogTail *log = path->log;
    QueueTail *queue = append->queue;
    int64_t at = log->end_phy_offset, queue_offset = queue->max_offset, unit_at = queue_offset * UNIT_BYTES;
    int64_t now_ms = append->store_timestamp_ms;
    size_t size = path->bare_size + append->values.topic.size + message->body.size + message->properties.size;
    if (log->is_shut || at >= log->wake_allocator_at || !window_holds(&log->window, at, at + (int64_t)size) ||
        !window_holds(&queue->window, unit_at, unit_at + UNIT_BYTES))
        return false;
    struct record_own own = {
        .topic = append->values.topic,
        .body = message->body,
        .properties = message->properties,
        .queue_offset = queue_offset,
        .phy_offset = at,
        .born_timestamp_ms = now_ms,
        .store_timestamp_ms = now_ms,
        .queue_id = append->values.queue_id,
        .flag = message->flag,
    };
    record_write(&path->head, &own, size, window_at(&log->window, at));
    __atomic_thread_fence(__ATOMIC_RELEASE); /* other processes that map the files see the record first */
    unit_write(window_at(&queue->window, unit_at), at, size, message->tags_code);
    if (message->properties.size)
        log->keyed_end = at + (int64_t)size;
    queue->max_phy_offset = at + (int64_t)size;
    queue->max_offset = queue_offset + 1;
    log_advance(log, at, at + (int64_t)size, now_ms);
    result->queue_id = own.queue_id;
    result->queue_offset = queue_offset;
    result->phy_offset = at;
    result->size_bytes = (long long)size;
    result->store_timestamp_ms = now_ms;
    return true;
}

/* Appends one message; the steps that may run Python code come first. Returns FALLBACK if it did nothing. */
static enum outcome append_one(FastPath *path, const struct put_call *call, PutResult **result)
{
    struct append append; /* only the fields that are used here are set: clearing all of it takes time */
    struct put_message message;
    PyObject *queue_id = call->named[QUEUE_ID];
    append.topic = call->topic;
    append.values.queue_id = 0;
    if ((queue_id && !py_to_i32(queue_id, &append.values.queue_id)) ||
        fast_path_find(path, &append) != DONE ||
        spans_are_equal(append.values.topic, TEXT(SEGLOG_SCHEDULE_TOPIC)))
        return FALLBACK;
    enum outcome outcome = fast_path_prepare(path, &append, false, false);
    if (outcome != DONE || !take_message(path, call, &message))
        return outcome == FAILED ? FAILED : FALLBACK;
    *result = put_result_new(call->topic, path->known[USUAL_STORE_HOST], call->durability);
    if (!*result)
        return FAILED;
    if (write_one(path, &append, &message, *result))
        return DONE;
    Py_CLEAR(*result);
    return FALLBACK;
}

/* Wakes the waiters of the queue. */
static bool notify(FastPath *path, const PutResult *result)
{
    if (PyDict_Size(path->known[WAITING]) == 0)
        return true;
    PyObject *answer = PyObject_CallFunction(path->known[NOTIFY], "Oi", result->topic, result->queue_id);
    Py_XDECREF(answer);
    return answer;
}

PyObject *fast_path_put(FastPath *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    struct put_call call = {NULL, NULL, {NULL}, NULL};
    PutResult *result = NULL;
    enum outcome outcome = FALLBACK;
    if (count == 2 && !self->is_closed && PyList_Size(self->known[GATHERED]) == 0 &&
        (!names || take_named(&call, args + count, names)) && take_durability(self, &call)) {
        call.topic = args[0];
        call.body = args[1];
        outcome = append_one(self, &call, &result);
    }
    if (outcome == FALLBACK) {
        PyErr_Clear();
        return fast_path_put_any(self, args, count, names);
    }
    if (result && !notify(self, result))
        Py_CLEAR(result);
    return (PyObject *)result;
}
