/* The calls of the type FastPath that append. */

#include "fast_path.h"
#include "put_result.h"
#include "record.h"

/* The parameters of the calls that append. */
enum argument {
    TOPIC,
    QUEUE_ID,
    BODY,
    MESSAGES,
    PROPERTIES,
    TAGS_CODE,
    TAGS,
    KEYS,
    FLAG,
    DURABILITY,
    SYS_FLAG,
    BORN_TIMESTAMP_MS,
    BORN_HOST,
    STORE_HOST,
    RECONSUME_TIMES,
    PREPARED_TRANSACTION_OFFSET,
    ARGUMENTS
};

enum { MOST_POSITIONAL = 13 };

/* The form of the calls of one method that the fast path takes: all of `positional` by position, those of
 * `named` by name or not at all. */
struct signature {
    size_t positional_count;
    enum argument positional[MOST_POSITIONAL];
    unsigned named; /* bits of arguments */
};

#define NAMED(argument) (1u << (argument))

static const char *const argument_texts[ARGUMENTS] = {
    [TOPIC] = "topic",
    [QUEUE_ID] = "queue_id",
    [BODY] = "body",
    [MESSAGES] = "messages",
    [PROPERTIES] = "properties",
    [TAGS_CODE] = "tags_code",
    [TAGS] = "tags",
    [KEYS] = "keys",
    [FLAG] = "flag",
    [DURABILITY] = "durability",
    [SYS_FLAG] = "sys_flag",
    [BORN_TIMESTAMP_MS] = "born_timestamp_ms",
    [BORN_HOST] = "born_host",
    [STORE_HOST] = "store_host",
    [RECONSUME_TIMES] = "reconsume_times",
    [PREPARED_TRANSACTION_OFFSET] = "prepared_transaction_offset",
};

static PyObject *argument_names[ARGUMENTS];

/* Compares by identity: the compiler interns the names in calls. Other names are left to the Python twin. */
static int number_of(PyObject *name)
{
    for (int i = 0; i < ARGUMENTS; i++)
        if (argument_names[i] == name)
            return i;
    return -1;
}

/* Sorts the arguments of a vector call, borrowed; missing ones are NULL. Returns false for another form. */
static bool sort_arguments(const struct signature *signature, PyObject *const *args, Py_ssize_t count,
                           PyObject *names, PyObject *sorted[ARGUMENTS])
{
    memset(sorted, 0, ARGUMENTS * sizeof *sorted);
    if ((size_t)count != signature->positional_count)
        return false;
    for (Py_ssize_t i = 0; i < count; i++)
        sorted[signature->positional[i]] = args[i];
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t i = 0; i < named; i++) {
        int number = number_of(PyTuple_GetItem(names, i));
        if (number < 0 || !(signature->named & NAMED(number)))
            return false;
        sorted[number] = args[count + i];
    }
    return true;
}

/* The attributes of a NewMessage. */
enum { NEW_BODY, NEW_TAGS, NEW_KEYS, NEW_PROPERTIES, NEW_FLAG, NEW_FIELDS };

static PyObject *zero, *new_names[NEW_FIELDS];

bool fast_path_calls_prepare(void)
{
    static const char *const new_texts[NEW_FIELDS] = {"body", "tags", "keys", "properties", "flag"};
    zero = PyLong_FromLong(0);
    return zero && intern(argument_names, argument_texts, ARGUMENTS) &&
           intern(new_names, new_texts, NEW_FIELDS);
}

/* One call: the values to append, and the objects for its result. */
struct call {
    struct append append;
    PyObject *given[ARGUMENTS];
    PyObject *queue_id, *durability, *store_host; /* borrowed; the result gets the same objects */
    PyObject *offsets;
    bool is_sync, is_awaited, is_born;
};

static bool take_durability(FastPath *self, struct call *call)
{
    PyObject *durability = call->given[DURABILITY];
    if (!is_given(durability))
        durability = self->known[USUAL_DURABILITY];
    call->durability = durability;
    call->is_sync = durability == self->known[SYNC];
    return Py_IS_TYPE(durability, Py_TYPE(self->known[SYNC]));
}

static bool take_hosts(FastPath *self, struct call *call)
{
    PyObject *born = call->given[BORN_HOST], *store = call->given[STORE_HOST];
    struct record_values *values = &call->append.values;
    call->store_host = is_given(store) ? store : self->known[USUAL_STORE_HOST];
    values->store_host = self->store_host;
    if (is_given(store) && !py_to_host(store, &values->store_host))
        return false;
    values->born_host = values->store_host;
    return !is_given(born) || py_to_host(born, &values->born_host);
}

/* Reads the values that brokers give for a message; applications give none. */
static bool take_broker_values(struct call *call)
{
    PyObject **given = call->given;
    struct record_values *values = &call->append.values;
    call->is_born = is_given(given[BORN_TIMESTAMP_MS]);
    return (!given[SYS_FLAG] || py_to_i32(given[SYS_FLAG], &values->sys_flag)) &&
           takes_queue_offset(values->sys_flag) && !(values->sys_flag & SEGLOG_INNER_BATCH) &&
           (!call->is_born || py_to_i64(given[BORN_TIMESTAMP_MS], &values->born_timestamp_ms)) &&
           (!given[RECONSUME_TIMES] || py_to_i32(given[RECONSUME_TIMES], &values->reconsume_times)) &&
           (!given[PREPARED_TRANSACTION_OFFSET] ||
            py_to_i64(given[PREPARED_TRANSACTION_OFFSET], &values->prepared_transaction_offset));
}

/* Reads the values that all messages of the call share, and finds their queue. */
static enum outcome begin(FastPath *self, struct call *call)
{
    PyObject **given = call->given;
    memset(&call->append, 0, sizeof call->append);
    call->append.topic = given[TOPIC];
    if (self->is_closed || PyList_Size(self->known[GATHERED]) > 0)
        return FALLBACK; /* gathered puts were called before: Python writes them first */
    struct record_values *values = &call->append.values;
    values->record_crc = self->record_crc;
    call->queue_id = given[QUEUE_ID] ? given[QUEUE_ID] : zero;
    if (!PyLong_CheckExact(call->queue_id) || !py_to_i32(call->queue_id, &values->queue_id) ||
        !take_durability(self, call) || !take_hosts(self, call) || !take_broker_values(call))
        return FALLBACK;
    return fast_path_find(self, &call->append);
}

static bool is_called(PyObject *answer)
{
    Py_XDECREF(answer);
    return answer;
}

/* Wakes the waiters of the queue, and waits for the disk if the call wants it. */
static bool acknowledge(FastPath *self, const struct call *call, int64_t end)
{
    PyObject **known = self->known;
    if (PyDict_Size(known[WAITING]) > 0 &&
        !is_called(PyObject_CallFunctionObjArgs(known[NOTIFY], call->append.topic, call->queue_id, NULL)))
        return false;
    return !call->is_awaited || is_called(PyObject_CallFunction(known[ENSURE], "L", (long long)end));
}

/* Ends a call that was not done: returns NULL, without an exception if Python must do it. */
static PyObject *give_up(FastPath *self, enum outcome outcome)
{
    if (outcome == FAILED)
        return NULL;
    PyErr_Clear();
    self->lacks_window |= outcome == NO_WINDOW;
    return NULL;
}

/* Reads the messages of a call into the batch; returns FALLBACK or DONE. */
typedef enum outcome (*gather)(FastPath *self, const struct call *call);

/* Appends. The caller has created all Python objects before: creating one may run the garbage collector, and so
 * any Python code, between the checks and the write. */
static enum outcome append_with(FastPath *self, struct call *call, gather take)
{
    enum outcome outcome = fast_path_prepare(self, &call->append, call->is_born, call->is_sync);
    if (outcome != DONE)
        return outcome;
    batch_clear(&self->batch);
    outcome = take(self, call);
    return outcome == DONE ? fast_path_write(self, &call->append, call->is_sync) : outcome;
}

static void fill_result(FastPath *self, const struct call *call, PutResult *result)
{
    const struct append *append = &call->append;
    result->queue_id = append->values.queue_id;
    result->queue_offset = append->queue->max_offset - 1;
    result->phy_offset = self->log->last_phy_offset;
    result->size_bytes = (long long)self->batch.list->record_size;
    result->store_timestamp_ms = append->store_timestamp_ms;
}

/* Appends one message; returns its PutResult, or NULL as give_up does. */
static PyObject *one(FastPath *self, const struct signature *signature, gather take, bool may_wait,
                     PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    struct call call;
    PutResult *result = NULL;
    enum outcome outcome = FALLBACK;
    if (sort_arguments(signature, args, count, names, call.given))
        outcome = begin(self, &call);
    if (outcome == DONE) {
        /* Before the append: without memory for the result nothing must be written. */
        result = put_result_new(call.append.topic, call.store_host, call.durability);
        outcome = result ? append_with(self, &call, take) : FAILED;
    }
    if (outcome != DONE) {
        Py_XDECREF((PyObject *)result);
        return give_up(self, outcome);
    }
    fill_result(self, &call, result);
    call.is_awaited = call.is_sync && may_wait;
    if (!acknowledge(self, &call, self->log->end_phy_offset))
        Py_CLEAR(result);
    return (PyObject *)result;
}

/* Sets the physical offset of each record, from the last to the first. */
static bool fill_offsets(FastPath *self, const struct call *call, int64_t end)
{
    const struct batch *batch = &self->batch;
    for (size_t i = batch->count; i-- > 0;) {
        end -= (int64_t)batch->list[i].record_size;
        PyObject *offset = PyLong_FromLongLong(end);
        if (!offset || PyList_SetItem(call->offsets, (Py_ssize_t)i, offset) < 0)
            return false;
    }
    return true;
}

static PyObject *batch_result(FastPath *self, const struct call *call)
{
    const struct append *append = &call->append;
    int64_t end = self->log->end_phy_offset, size = 0;
    int64_t first = append->queue->max_offset - (int64_t)self->batch.count;
    for (size_t i = 0; i < self->batch.count; i++)
        size += (int64_t)self->batch.list[i].record_size;
    if (!fill_offsets(self, call, end))
        return NULL;
    PyObject *result = PyObject_CallFunction(
        self->known[BATCH_RESULT], "OOLOLLOO", append->topic, call->queue_id, (long long)first, call->offsets,
        (long long)size, (long long)append->store_timestamp_ms, call->store_host, call->durability);
    if (result && !acknowledge(self, call, end))
        Py_CLEAR(result);
    return result;
}

static Py_ssize_t count_of(PyObject *messages)
{
    if (PyList_CheckExact(messages))
        return PyList_Size(messages);
    return PyTuple_CheckExact(messages) ? PyTuple_Size(messages) : 0;
}

static PyObject *message_of(PyObject *messages, Py_ssize_t at)
{
    return PyList_CheckExact(messages) ? PyList_GetItem(messages, at) : PyTuple_GetItem(messages, at);
}

/* Appends many messages; returns their BatchResult, or NULL as give_up does. */
static PyObject *many(FastPath *self, const struct signature *signature, gather take, bool may_wait,
                      PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    struct call call;
    call.offsets = NULL;
    enum outcome outcome = FALLBACK;
    if (sort_arguments(signature, args, count, names, call.given) && count_of(call.given[MESSAGES]) > 0)
        outcome = begin(self, &call);
    if (outcome == DONE) {
        call.is_awaited = call.is_sync && may_wait;
        call.offsets = PyList_New(count_of(call.given[MESSAGES]));
        outcome = call.offsets ? append_with(self, &call, take) : FAILED;
    }
    PyObject *result = outcome == DONE ? batch_result(self, &call) : NULL;
    Py_XDECREF(call.offsets);
    return outcome == DONE ? result : give_up(self, outcome);
}

static enum outcome gather_put(FastPath *self, const struct call *call)
{
    struct batch *batch = &self->batch;
    PyObject *const *given = call->given;
    struct message *message = batch_add(batch);
    bool is_usual = message && batch_take_body(given[BODY], &message->body) &&
                    (!given[FLAG] || py_to_i32(given[FLAG], &message->flag)) &&
                    batch_put_properties(batch, given[TAGS], given[KEYS], given[PROPERTIES]);
    return is_usual ? DONE : FALLBACK;
}

/* Takes properties in stored form; returns false if they may need queue offsets. */
static bool take_raw(struct batch *batch, PyObject *properties, PyObject *code)
{
    struct span raw;
    struct message *message = &batch->list[batch->count - 1];
    return py_to_bytes(properties, &raw) && !properties_hold(raw, TEXT(SEGLOG_INNER_NAMES)) &&
           batch_raw_properties(batch, raw) && py_to_i64(code, &message->tags_code);
}

static enum outcome gather_append(FastPath *self, const struct call *call)
{
    struct batch *batch = &self->batch;
    PyObject *const *given = call->given;
    struct message *message = batch_add(batch);
    bool is_usual = message && batch_take_body(given[BODY], &message->body) &&
                    (!given[FLAG] || py_to_i32(given[FLAG], &message->flag)) &&
                    take_raw(batch, given[PROPERTIES], given[TAGS_CODE]);
    return is_usual ? DONE : FALLBACK;
}

/* Returns a field of a NewMessage, borrowed: the frozen dataclass keeps the reference. */
static PyObject *new_field(PyObject *item, int field)
{
    PyObject *value = PyObject_GetAttr(item, new_names[field]);
    Py_XDECREF(value);
    return value;
}

static bool take_new(struct batch *batch, struct message *message, PyObject *item)
{
    PyObject *fields[NEW_FIELDS];
    for (int i = 0; i < NEW_FIELDS; i++) {
        fields[i] = new_field(item, i);
        if (!fields[i])
            return false;
    }
    return batch_take_body(fields[NEW_BODY], &message->body) && py_to_i32(fields[NEW_FLAG], &message->flag) &&
           batch_put_properties(batch, fields[NEW_TAGS], fields[NEW_KEYS], fields[NEW_PROPERTIES]);
}

static enum outcome gather_put_batch(FastPath *self, const struct call *call)
{
    struct batch *batch = &self->batch;
    PyObject *messages = call->given[MESSAGES];
    Py_ssize_t count = PyList_Size(call->offsets);
    if (count_of(messages) != count)
        return FALLBACK; /* the list changed while the clock or a file check ran Python code */
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = message_of(messages, i);
        struct message *message = batch_add(batch);
        if (!message)
            return FALLBACK;
        bool is_usual = Py_IS_TYPE(item, (PyTypeObject *)self->known[NEW_MESSAGE])
                            ? take_new(batch, message, item)
                            : PyBytes_CheckExact(item) && py_to_bytes(item, &message->body);
        if (!is_usual)
            return FALLBACK;
    }
    return DONE;
}

static enum outcome gather_append_batch(FastPath *self, const struct call *call)
{
    enum { RAW_BODY, RAW_PROPERTIES, RAW_CODE, RAW_FLAG };
    struct batch *batch = &self->batch;
    PyObject *messages = call->given[MESSAGES];
    Py_ssize_t count = PyList_Size(call->offsets);
    if (count_of(messages) != count)
        return FALLBACK;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = message_of(messages, i);
        struct message *message = batch_add(batch);
        if (!message || !Py_IS_TYPE(item, (PyTypeObject *)self->known[RAW_MESSAGE]) ||
            !batch_take_body(PyTuple_GetItem(item, RAW_BODY), &message->body) ||
            !py_to_i32(PyTuple_GetItem(item, RAW_FLAG), &message->flag) ||
            !take_raw(batch, PyTuple_GetItem(item, RAW_PROPERTIES), PyTuple_GetItem(item, RAW_CODE)))
            return FALLBACK;
    }
    return DONE;
}

PyObject *fast_path_put_any(FastPath *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const struct signature signature = {
        2,
        {TOPIC, BODY},
        NAMED(QUEUE_ID) | NAMED(TAGS) | NAMED(KEYS) | NAMED(PROPERTIES) | NAMED(FLAG) | NAMED(DURABILITY),
    };
    return one(self, &signature, gather_put, true, args, count, names);
}

PyObject *fast_path_append(FastPath *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const struct signature signature = {
        5,
        {TOPIC, QUEUE_ID, BODY, PROPERTIES, TAGS_CODE},
        NAMED(SYS_FLAG) | NAMED(FLAG) | NAMED(BORN_TIMESTAMP_MS) | NAMED(BORN_HOST) | NAMED(STORE_HOST) |
            NAMED(RECONSUME_TIMES) | NAMED(PREPARED_TRANSACTION_OFFSET) | NAMED(DURABILITY),
    };
    return one(self, &signature, gather_append, true, args, count, names);
}

PyObject *fast_path_put_batch(FastPath *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const struct signature signature = {
        2,
        {TOPIC, MESSAGES},
        NAMED(QUEUE_ID) | NAMED(DURABILITY),
    };
    return many(self, &signature, gather_put_batch, true, args, count, names);
}

PyObject *fast_path_append_batch(FastPath *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const struct signature signature = {
        3,
        {TOPIC, QUEUE_ID, MESSAGES},
        NAMED(SYS_FLAG) | NAMED(BORN_TIMESTAMP_MS) | NAMED(BORN_HOST) | NAMED(RECONSUME_TIMES) |
            NAMED(DURABILITY),
    };
    return many(self, &signature, gather_append_batch, true, args, count, names);
}

static PyObject *or_none(PyObject *result)
{
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}

PyObject *fast_path_try_put(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const struct signature signature = {
        8,
        {TOPIC, BODY, QUEUE_ID, TAGS, KEYS, PROPERTIES, FLAG, DURABILITY},
        0,
    };
    return or_none(one((FastPath *)self, &signature, gather_put, false, args, count, names));
}

PyObject *fast_path_try_put_batch(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const struct signature signature = {4, {TOPIC, MESSAGES, QUEUE_ID, DURABILITY}, 0};
    return or_none(many((FastPath *)self, &signature, gather_put_batch, false, args, count, names));
}

PyObject *fast_path_try_append(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const struct signature signature = {
        13,
        {TOPIC, QUEUE_ID, BODY, PROPERTIES, TAGS_CODE, SYS_FLAG, FLAG, BORN_TIMESTAMP_MS, BORN_HOST,
         STORE_HOST, RECONSUME_TIMES, PREPARED_TRANSACTION_OFFSET, DURABILITY},
        0,
    };
    return or_none(one((FastPath *)self, &signature, gather_append, false, args, count, names));
}

PyObject *fast_path_try_append_batch(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const struct signature signature = {
        8,
        {TOPIC, QUEUE_ID, MESSAGES, SYS_FLAG, BORN_TIMESTAMP_MS, BORN_HOST, RECONSUME_TIMES, DURABILITY},
        0,
    };
    return or_none(many((FastPath *)self, &signature, gather_append_batch, false, args, count, names));
}
