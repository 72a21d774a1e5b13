#include "lane.h"

#include <string.h>
#include <time.h>

#include "../layout.h"
#include "take.h"

enum { MOST_QUEUES = 1024, UNIT = SEGLOG_CQ_UNIT_BYTES, MS_PER_S = 1000, NS_PER_MS = 1000000, MOST_PAST_MAP = 1 << 20 };

static PyTypeObject *topic_type;
static PyObject *now_name;

enum outcome lane_find(struct lane *lane, struct append *append)
{
    if (lane->is_closed || !PyUnicode_CheckExact(append->topic))
        return lane->is_closed ? LACKING : ODD;
    if (append->topic != lane->last_name) {
        PyObject *found = PyDict_GetItemWithError(lane->topics, append->topic);
        if (!found)
            return LACKING;
        PyObject *old = lane->last_name;
        lane->last_name = Py_NewRef(append->topic);
        lane->last_topic = (LaneTopic *)found;
        Py_XDECREF(old);
    }
    LaneTopic *topic = lane->last_topic;
    int32_t queue_id = append->values.queue_id;
    if (queue_id < 0 || (size_t)queue_id >= topic->count || !topic->queues[queue_id])
        return LACKING;
    append->queue = topic->queues[queue_id];
    append->values.topic = span_of(topic->name, topic->name_size);
    return DONE;
}

static bool ask_clock(PyObject *clock, int64_t *now_ms)
{
    PyObject *answer = PyObject_CallMethodObjArgs(clock, now_name, NULL);
    bool is_taken = answer && take_i64(answer, now_ms);
    Py_XDECREF(answer);
    return is_taken;
}

static bool read_clock(const struct lane *lane, struct append *append, bool is_born)
{
    if (!lane->clock) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        append->store_timestamp_ms = (int64_t)now.tv_sec * MS_PER_S + now.tv_nsec / NS_PER_MS;
    } else if (!ask_clock(lane->clock, &append->store_timestamp_ms)) {
        return false;
    }
    if (!is_born)
        append->values.born_timestamp_ms = append->store_timestamp_ms;
    return true;
}

enum outcome lane_prepare(struct lane *lane, struct append *append, bool is_born, bool is_sync)
{
    LogTip *log = lane->log;
    int64_t end = log->end_phy_offset;
    PyObject *queue = Py_NewRef((PyObject *)append->queue); /* others may have it forgotten */
    enum outcome outcome = DONE;
    if (!read_clock(lane, append, is_born))
        outcome = FAILED;
    else if (!window_check(&log->window, append->store_timestamp_ms, is_sync) ||
             !window_check(&append->queue->window, append->store_timestamp_ms, is_sync))
        outcome = ODD;
    else if (lane->clock && end != log->end_phy_offset)
        outcome = ODD; /* somebody else's message went between; this one's time may be the earlier one */
    Py_DECREF(queue);
    return outcome == DONE ? lane_find(lane, append) : outcome;
}

static struct draft_values values_of(const struct lane *lane, const struct append *append,
                                     const struct message *message)
{
    struct draft_values values = append->values;
    values.body = message->body;
    values.properties = batch_properties(&lane->batch, message);
    values.flag = message->flag;
    return values;
}

/* The size of all records; 0 where one is not a usual one. */
static size_t measure(struct lane *lane, const struct append *append)
{
    size_t total = 0;
    for (size_t i = 0; i < lane->batch.count; i++) {
        struct message *message = &lane->batch.list[i];
        struct draft_values values = values_of(lane, append, message);
        if (message->body.size > lane->max_body_bytes || !draft_is_usual(&values))
            return 0;
        message->record_size = draft_size(&values);
        total += message->record_size;
    }
    return total;
}

static void write_unit(uint8_t *unit, int64_t phy_offset, const struct message *message)
{
    write_u64(unit + SEGLOG_CQ_UNIT_PHY_OFFSET_AT, (uint64_t)phy_offset);
    write_u32(unit + SEGLOG_CQ_UNIT_SIZE_BYTES_AT, (uint32_t)message->record_size);
    write_u64(unit + SEGLOG_CQ_UNIT_TAGS_CODE_AT, (uint64_t)message->tags_code);
}

/* Makes the records one behind the other. */
static void write_records(const struct lane *lane, const struct append *append, uint8_t *target)
{
    LogTip *log = lane->log;
    struct place place = {append->queue->max_offset, log->end_phy_offset, append->store_timestamp_ms};
    for (size_t i = 0; i < lane->batch.count; i++) {
        const struct message *message = &lane->batch.list[i];
        struct draft_values values = values_of(lane, append, message);
        record_write(&values, &place, target);
        target += message->record_size;
        place.phy_offset += (int64_t)message->record_size;
        place.queue_offset++;
    }
}

/* Behind the records: who follows a queue must find what its units lead to. */
static void publish(const struct lane *lane, const struct append *append)
{
    QueueTip *queue = append->queue;
    LogTip *log = lane->log;
    int64_t at = log->end_phy_offset, last = at, queue_offset = queue->max_offset, keyed_end = log->keyed_end;
    __atomic_thread_fence(__ATOMIC_RELEASE);
    for (size_t i = 0; i < lane->batch.count; i++) {
        const struct message *message = &lane->batch.list[i];
        write_unit(window_at(&queue->window, queue_offset++ * UNIT), at, message);
        last = at;
        at += (int64_t)message->record_size;
        if (message->properties_size)
            keyed_end = at;
    }
    log->keyed_end = keyed_end;
    queue->max_phy_offset = at;
    queue->max_offset = queue_offset;
    log->last_phy_offset = last;
    log->last_store_ms = append->store_timestamp_ms;
    if (log->newest_store_ms < append->store_timestamp_ms)
        log->newest_store_ms = append->store_timestamp_ms;
    log->end_phy_offset = at;
}

static bool write_past_map(struct lane *lane, const struct append *append, size_t size)
{
    LogTip *log = lane->log;
    if (lane->scratch_room < size) {
        uint8_t *scratch = PyMem_Realloc(lane->scratch, size);
        if (!scratch)
            return false;
        lane->scratch = scratch;
        lane->scratch_room = size;
    }
    write_records(lane, append, lane->scratch);
    if (lane->batch.count == 1)
        return window_write_one(&log->window, log->end_phy_offset, lane->scratch, size);
    return window_write_run(&log->window, log->end_phy_offset, lane->scratch, size);
}

enum outcome lane_append(struct lane *lane, const struct append *append, bool is_sync)
{
    LogTip *log = lane->log;
    QueueTip *queue = append->queue;
    size_t size = measure(lane, append);
    if (!size || size > INT32_MAX)
        return ODD;
    int64_t end = log->end_phy_offset, units = queue->max_offset * UNIT;
    if (log->is_shut || end >= log->nudge_at ||
        !window_holds(&log->window, end, end + (int64_t)size) ||
        !window_holds(&queue->window, units, units + (int64_t)lane->batch.count * UNIT))
        return LACKING;
    if (!is_sync || log->window.descriptor < 0 || size > MOST_PAST_MAP)
        write_records(lane, append, window_at(&log->window, end));
    else if (!write_past_map(lane, append, size))
        return ODD;
    publish(lane, append);
    return DONE;
}

static LaneTopic *new_topic(PyObject *name)
{
    struct span text;
    if (!take_text(name, &text) || text.size > SEGLOG_MAX_TOPIC_BYTES) {
        PyErr_SetString(PyExc_ValueError, "such a topic has no lane");
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(topic_type, Py_tp_alloc);
    LaneTopic *topic = (LaneTopic *)allocate(topic_type, 0);
    if (topic) {
        topic->name_size = text.size;
        memcpy(topic->name, text.at, text.size);
    }
    return topic;
}

static void topic_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    LaneTopic *topic = (LaneTopic *)self;
    for (size_t i = 0; i < topic->count; i++)
        Py_XDECREF((PyObject *)topic->queues[i]);
    PyMem_Free(topic->queues);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static int add_queue(LaneTopic *topic, size_t queue_id, QueueTip *queue)
{
    if (queue_id >= topic->count) {
        QueueTip **queues = PyMem_Realloc(topic->queues, (queue_id + 1) * sizeof(QueueTip *));
        if (!queues) {
            PyErr_NoMemory();
            return -1;
        }
        memset(queues + topic->count, 0, (queue_id + 1 - topic->count) * sizeof(QueueTip *));
        topic->queues = queues;
        topic->count = queue_id + 1;
    }
    PyObject *old = (PyObject *)topic->queues[queue_id];
    topic->queues[queue_id] = (QueueTip *)Py_NewRef((PyObject *)queue);
    Py_XDECREF(old);
    return 0;
}

int lane_add(struct lane *lane, PyObject *name, int32_t queue_id, QueueTip *queue)
{
    if (queue_id < 0 || queue_id >= MOST_QUEUES)
        return 0; /* the twin serves it */
    PyObject *topic = Py_XNewRef(PyDict_GetItemWithError(lane->topics, name));
    if (!topic) {
        topic = (PyObject *)new_topic(name);
        if (!topic || PyDict_SetItem(lane->topics, name, topic) < 0) {
            Py_XDECREF(topic);
            return -1;
        }
    }
    int result = add_queue((LaneTopic *)topic, (size_t)queue_id, queue);
    Py_DECREF(topic);
    return result;
}

void lane_forget(struct lane *lane)
{
    Py_CLEAR(lane->last_name);
    if (lane->topics)
        PyDict_Clear(lane->topics);
}

static PyType_Slot slots[] = {
    {Py_tp_dealloc, (void *)topic_dealloc},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "seglog.storage.kernels._native.LaneTopic",
    .basicsize = sizeof(LaneTopic),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int lane_topic_add(PyObject *module)
{
    now_name = PyUnicode_InternFromString("now_ms");
    PyObject *type = PyType_FromSpec(&spec);
    if (!now_name || !type || PyModule_AddObjectRef(module, "LaneTopic", type) < 0) {
        Py_XDECREF(type);
        return -1;
    }
    topic_type = (PyTypeObject *)type;
    return 0;
}
