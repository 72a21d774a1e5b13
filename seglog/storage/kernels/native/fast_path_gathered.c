/* Writes gathered puts to any queues, in the order of the calls: one check of each file, one write. */

#include "fast_path.h"
#include "put_result.h"

/* A gathered put, a tuple: the arguments of try_put, and the future of its result. */
enum put_field {
    PUT_TOPIC,
    PUT_BODY,
    PUT_QUEUE_ID,
    PUT_TAGS,
    PUT_KEYS,
    PUT_PROPERTIES,
    PUT_FLAG,
    PUT_DURABILITY,
    PUT_FUTURE,
    PUT_FIELDS
};

enum { MOST_PUTS = 2048, MOST_BYTES = 1 << 20 };

/* The place of one put. */
struct place {
    QueueTail *queue; /* borrowed from the topics of the fast path */
    PyObject *durability; /* borrowed from the put or the fast path */
    int64_t queue_offset, phy_offset, size;
    int32_t queue_id;
};

/* The puts that are written in one go. */
struct go {
    FastPath *path;
    PyObject *puts; /* a list of our own, so that the puts live as long as the go */
    struct append append;
    struct place *places;
    size_t count; /* number of puts that will be written */
    int64_t start, size;
};

static PyObject *field(const struct go *go, size_t i, enum put_field number)
{
    return PyTuple_GetItem(PyList_GetItem(go->puts, (Py_ssize_t)i), number);
}

/* Finds the queue of a put. */
static enum outcome find(struct go *go, size_t i)
{
    PyObject *put = PyList_GetItem(go->puts, (Py_ssize_t)i);
    if (!PyTuple_CheckExact(put) || PyTuple_Size(put) != PUT_FIELDS)
        return FALLBACK;
    PyObject *queue_id = field(go, i, PUT_QUEUE_ID);
    go->append.topic = field(go, i, PUT_TOPIC);
    if (!PyLong_CheckExact(queue_id) || !py_to_i32(queue_id, &go->append.values.queue_id))
        return FALLBACK;
    return fast_path_find(go->path, &go->append);
}

/* Does the steps that may run Python code: reads the clock, and checks that no file was cut. */
static enum outcome look(struct go *go)
{
    FastPath *path = go->path;
    size_t count = (size_t)PyList_Size(go->puts);
    enum outcome outcome = find(go, 0);
    if (outcome == DONE)
        outcome = fast_path_prepare(path, &go->append, false, true);
    if (outcome != DONE)
        return outcome;
    int64_t look = ++path->looks;
    go->append.queue->look = look;
    for (size_t i = 1; i < count; i++) {
        if (find(go, i) != DONE)
            return DONE; /* the puts before it can be written */
        QueueTail *queue = go->append.queue;
        if (queue->look == look)
            continue;
        Py_INCREF((PyObject *)queue); /* the check may run Python code, which may remove the queue */
        bool is_whole = window_check(&queue->window, go->append.store_timestamp_ms, true);
        queue->look = is_whole ? look : 0; /* take() refuses queues that were not checked in this go */
        Py_DECREF((PyObject *)queue);
        if (!is_whole)
            return DONE;
    }
    return DONE;
}

/* Returns the properties of a message; the memory may move when messages are added. */
static struct span properties_of(const struct batch *batch, const struct message *message)
{
    if (!message->properties_size)
        return span_of(NULL, 0);
    return span_of(batch->properties + message->properties_at, message->properties_size);
}

/* Takes one put into the batch if it is a usual one and there is room. No Python code runs from here to the
 * end. */
static enum outcome take(struct go *go, size_t i)
{
    FastPath *path = go->path;
    struct batch *batch = &path->batch;
    struct place *place = &go->places[i];
    enum outcome outcome = find(go, i);
    if (outcome != DONE)
        return outcome;
    QueueTail *queue = go->append.queue;
    PyObject *given = field(go, i, PUT_DURABILITY);
    place->durability = is_given(given) ? given : path->known[USUAL_DURABILITY];
    struct message *message = batch_add(batch);
    if (!message || queue->look != path->looks ||
        !Py_IS_TYPE(place->durability, Py_TYPE(path->known[SYNC])) ||
        !batch_take_body(field(go, i, PUT_BODY), &message->body) ||
        !py_to_i32(field(go, i, PUT_FLAG), &message->flag) ||
        !batch_put_properties(batch, field(go, i, PUT_TAGS), field(go, i, PUT_KEYS),
                              field(go, i, PUT_PROPERTIES)))
        return FALLBACK;
    struct span properties = properties_of(batch, message);
    if (message->body.size > path->max_body_bytes ||
        !record_owns_usual(message->body, properties, path->record_crc) ||
        spans_are_equal(go->append.values.topic, TEXT(SEGLOG_SCHEDULE_TOPIC)))
        return FALLBACK;
    message->record_size =
        path->bare_size + go->append.values.topic.size + message->body.size + message->properties_size;
    place->queue_id = go->append.values.queue_id;
    place->queue = queue;
    place->size = (int64_t)message->record_size;
    place->phy_offset = go->start + go->size;
    place->queue_offset = queue->max_offset + queue->gathered;
    int64_t end = place->phy_offset + place->size, unit = place->queue_offset * UNIT_BYTES;
    if (!window_holds(&path->log->window, place->phy_offset, end) ||
        !window_holds(&queue->window, unit, unit + UNIT_BYTES))
        return NO_WINDOW;
    if (i && end - go->start > MOST_BYTES)
        return FALLBACK; /* the next go takes it */
    queue->gathered++;
    go->size = end - go->start;
    return DONE;
}

/* Takes the first puts that can be written in one go. */
static enum outcome take_all(struct go *go)
{
    FastPath *path = go->path;
    LogTail *log = path->log;
    enum outcome outcome = DONE;
    if (log->is_shut || log->end_phy_offset >= log->wake_allocator_at)
        return NO_WINDOW;
    go->start = log->end_phy_offset;
    batch_clear(&path->batch);
    size_t count = (size_t)PyList_Size(go->puts);
    while (go->count < count && (outcome = take(go, go->count)) == DONE)
        go->count++;
    for (size_t i = 0; i < go->count; i++)
        go->places[i].queue->gathered = 0; /* the counter is valid within take_all only */
    path->batch.count = go->count;
    return go->count ? DONE : outcome;
}

static void write_records(struct go *go, uint8_t *target)
{
    FastPath *path = go->path;
    for (size_t i = 0; i < go->count; i++) {
        const struct message *message = &path->batch.list[i];
        const struct place *place = &go->places[i];
        find(go, i);
        struct record_own own = {
            .topic = go->append.values.topic,
            .body = message->body,
            .properties = properties_of(&path->batch, message),
            .queue_offset = place->queue_offset,
            .phy_offset = place->phy_offset,
            .born_timestamp_ms = go->append.store_timestamp_ms,
            .store_timestamp_ms = go->append.store_timestamp_ms,
            .queue_id = place->queue_id,
            .flag = message->flag,
        };
        record_write(&path->head, &own, message->record_size, target);
        target += message->record_size;
    }
}

/* Writes all records in the order of their bytes: if the process is killed meanwhile, it leaves whole records
 * and at most one torn record after them. */
static bool write_all(struct go *go)
{
    LogTail *log = go->path->log;
    size_t size = (size_t)go->size;
    if (log->window.descriptor < 0 || size > MOST_BYTES) {
        write_records(go, window_at(&log->window, go->start));
        return true;
    }
    uint8_t *scratch = fast_path_scratch(go->path, size);
    if (!scratch)
        return false;
    write_records(go, scratch);
    log->past_map_bytes += go->size;
    return go->count == 1 ? window_pwrite_one(&log->window, go->start, scratch, size)
                          : window_pwrite_run(&log->window, go->start, scratch, size);
}

/* Writes the units and moves the tails, after the records: a reader that follows a queue must find the record of
 * every unit. */
static void publish(const struct go *go)
{
    LogTail *log = go->path->log;
    int64_t keyed_end = log->keyed_end, now_ms = go->append.store_timestamp_ms;
    __atomic_thread_fence(__ATOMIC_RELEASE);
    for (size_t i = 0; i < go->count; i++) {
        const struct message *message = &go->path->batch.list[i];
        const struct place *place = &go->places[i];
        int64_t end = place->phy_offset + place->size;
        unit_write(window_at(&place->queue->window, place->queue_offset * UNIT_BYTES), place->phy_offset,
                   message->record_size, message->tags_code);
        if (message->properties_size)
            keyed_end = end;
        place->queue->max_phy_offset = end;
        place->queue->max_offset = place->queue_offset + 1;
    }
    log->keyed_end = keyed_end;
    log_advance(log, go->places[go->count - 1].phy_offset, go->start + go->size, now_ms);
}

/* Returns the result of a put; None without memory for it, because the put is stored already. */
static PyObject *result_of(const struct go *go, size_t i)
{
    const struct place *place = &go->places[i];
    PyObject *host = go->path->known[USUAL_STORE_HOST];
    PutResult *result = put_result_new(field(go, i, PUT_TOPIC), host, place->durability);
    if (!result) {
        PyErr_Clear();
        return Py_NewRef(Py_None);
    }
    result->queue_id = place->queue_id;
    result->queue_offset = place->queue_offset;
    result->phy_offset = place->phy_offset;
    result->size_bytes = place->size;
    result->store_timestamp_ms = go->append.store_timestamp_ms;
    return (PyObject *)result;
}

static void wake_waiters(const struct go *go)
{
    PyObject **known = go->path->known;
    for (size_t i = 0; i < go->count && known[WAITING] && PyDict_Size(known[WAITING]) > 0; i++) {
        PyObject *answer = PyObject_CallFunctionObjArgs(known[NOTIFY], field(go, i, PUT_TOPIC),
                                                        field(go, i, PUT_QUEUE_ID), NULL);
        if (!answer)
            PyErr_WriteUnraisable(known[NOTIFY]); /* the puts are stored: an error must not undo their results
            */
        Py_XDECREF(answer);
    }
}

/* Appends the puts that it can, removes them from the gathered ones, and fills the lists. */
static enum outcome run(struct go *go, PyObject *gathered, PyObject *futures, PyObject *results)
{
    enum outcome outcome = look(go);
    if (outcome == DONE)
        outcome = take_all(go);
    if (outcome == DONE && !write_all(go))
        outcome = FALLBACK;
    if (outcome != DONE) {
        go->count = 0;
        return outcome;
    }
    publish(go);
    /* `puts` keeps the removed objects alive, so that this runs no Python code: a written put must not stay
     * among the gathered ones, or it would be written twice. */
    if (PyList_SetSlice(gathered, 0, (Py_ssize_t)go->count, NULL) < 0)
        return FAILED;
    /* Python code may run from here on, and another call may use the batch. */
    for (size_t i = 0; i < go->count; i++) {
        PyList_SetItem(futures, (Py_ssize_t)i, Py_NewRef(field(go, i, PUT_FUTURE)));
        PyList_SetItem(results, (Py_ssize_t)i, result_of(go, i));
    }
    return DONE;
}

static bool cut(PyObject *list, size_t count)
{
    return PyList_SetSlice(list, (Py_ssize_t)count, PyList_Size(list), NULL) == 0;
}

PyObject *fast_path_try_puts(PyObject *self, PyObject *made)
{
    FastPath *path = (FastPath *)self;
    PyObject *gathered = path->known[GATHERED];
    Py_ssize_t count = gathered && PyList_CheckExact(gathered) ? PyList_Size(gathered) : 0;
    if (!PyList_CheckExact(made))
        return PyErr_Format(PyExc_TypeError, "a list expected");
    if (count == 0 || path->is_closed)
        Py_RETURN_FALSE;
    if (count > MOST_PUTS)
        count = MOST_PUTS;
    /* All objects are created first: creating one may run the garbage collector, and so any Python code. */
    struct go go = {.path = path, .puts = PyList_GetSlice(gathered, 0, count)};
    go.places = PyMem_Calloc((size_t)count, sizeof *go.places);
    PyObject *futures = PyList_New(count), *results = PyList_New(count);
    PyObject *pair = futures && results ? PyTuple_Pack(2, futures, results) : NULL;
    enum outcome outcome = FAILED;
    if (!go.places)
        PyErr_NoMemory();
    else if (go.puts && pair)
        outcome = run(&go, gathered, futures, results);
    if (outcome == DONE &&
        (!cut(futures, go.count) || !cut(results, go.count) || PyList_Append(made, pair) < 0))
        outcome = FAILED;
    if (outcome == DONE)
        wake_waiters(&go);
    PyMem_Free(go.places);
    Py_XDECREF(go.puts);
    Py_XDECREF(futures);
    Py_XDECREF(results);
    Py_XDECREF(pair);
    if (outcome == FAILED)
        return NULL;
    PyErr_Clear();
    path->lacks_window |= outcome == NO_WINDOW;
    return PyBool_FromLong(outcome == DONE);
}
