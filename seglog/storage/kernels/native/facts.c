/* The facts that a compaction needs about records, and the last record of each key. */

#include "python_api.h"
#include "record.h"

#include <stdlib.h>

/* The marks of a placeholder: `flag` in its head, and its only property. */
struct mark {
    int32_t flag;
    struct span property;
};

/* Bits of a fact, as seglog/storage/kernels/record_facts.py names them. */
enum {
    HAS_KEY = 1,
    IS_EMPTY = 2,
    IS_PLACEHOLDER = 4,
    IS_FILLER = 8,
    HAS_CRC = 32,
    TAKES_SLOT = 64,
    IS_SINGLE = 128
};

/* The facts that are requested for a queue. */
enum { ASKS_KEYS = 1, ASKS_FILLER = 2 };

static size_t head_bytes(int32_t sys_flag)
{
    switch (sys_flag & SEGLOG_HOST_BITS) {
    case 0:
        return SEGLOG_HEADS_0_SIZE;
    case SEGLOG_HOST_BITS:
        return SEGLOG_HEADS_48_SIZE;
    default:
        return SEGLOG_HEADS_16_SIZE; /* HEADS_32 is as long */
    }
}

static bool is_wide(struct span topic)
{
    return topic.size > SEGLOG_MAX_TOPIC_BYTES;
}

/* Returns the size of head, topic and the length field of the properties. */
static size_t least_bytes(int32_t sys_flag, struct span topic)
{
    return head_bytes(sys_flag) + 1 + is_wide(topic) + topic.size + sizeof(int16_t);
}

/* Returns the size of a placeholder; it has no mark if the mark would make it longer than the record. */
static size_t placeholder_bytes(const struct record *record, size_t mark_size)
{
    size_t least = least_bytes(record->sys_flag, record->topic);
    least += record_has_crc_property(record) ? SEGLOG_CRC_PROPERTY_BYTES : 0;
    return least + mark_size <= record->bytes.size ? least + mark_size : least;
}

static bool is_placeholder(const struct record *record, const struct mark *mark)
{
    struct span own = record->properties;
    if (read_i32(record->bytes.at + SEGLOG_HEADS_0_FLAG_AT) != mark->flag || record->body.size)
        return false;
    if (record_has_crc_property(record))
        own.size -= SEGLOG_CRC_PROPERTY_BYTES;
    return !own.size || spans_are_equal(own, mark->property);
}

/* MurmurHash3's finalizer. */
static uint64_t mixed(uint64_t value)
{
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD;
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53;
    return value ^ value >> 33;
}

#define STEP 0x9E3779B97F4A7C15u

static uint64_t salted_hash(struct span text, uint64_t salt)
{
    uint64_t total = mixed(text.size ^ salt);
    for (uint64_t number = 1; text.size; number++) {
        size_t taken = text.size < sizeof(uint64_t) ? text.size : sizeof(uint64_t);
        uint64_t word = 0;
        for (size_t i = 0; i < taken; i++)
            word |= (uint64_t)text.at[i] << (8 * i);
        total += mixed(word ^ (salt + number * STEP));
        text = span_after(text, taken);
    }
    return mixed(total);
}

static bool is_blank(struct span text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.at[i] != ' ' && (text.at[i] < '\t' || text.at[i] > '\r'))
            return false;
    return true;
}

struct facts_job {
    struct span log;
    int64_t phy_offset;
    const uint8_t *rows;
    size_t count, done;
    struct span asks; /* a byte for each queue */
    uint64_t salt;
    struct mark mark;
    uint8_t *facts;
};

static void fact_of(const struct facts_job *job, const struct record *record, const uint8_t *row,
                    uint8_t *fact)
{
    int32_t queue = row_i32(row + SEGLOG_ROW_QUEUE_AT);
    uint8_t asked = queue >= 0 && (size_t)queue < job->asks.size ? job->asks.at[queue] : 0;
    unsigned int bits = 0;
    uint64_t high = 0, low = 0;
    bool takes_slot = takes_queue_offset(record->sys_flag);
    bool is_single = takes_slot && !(record->sys_flag & SEGLOG_INNER_BATCH) &&
                     !properties_hold(record->properties, TEXT(SEGLOG_INNER_NAMES));
    bits |= record->body.size ? 0 : IS_EMPTY;
    bits |= takes_slot ? TAKES_SLOT : 0;
    bits |= is_single ? IS_SINGLE : 0;
    bits |= record_has_crc_property(record) ? HAS_CRC : 0;
    bits |= takes_slot && is_placeholder(record, &job->mark) ? IS_PLACEHOLDER : 0;
    bits |= asked & ASKS_FILLER && !takes_slot ? IS_FILLER : 0;
    if (asked & ASKS_KEYS && is_single) {
        struct span keys = property_value(record->properties, TEXT(SEGLOG_KEYS "\001"));
        if (!is_blank(keys)) {
            bits |= HAS_KEY;
            high = salted_hash(keys, job->salt);
            low = salted_hash(keys, job->salt ^ STEP);
        }
    }
    uint16_t least = (uint16_t)placeholder_bytes(record, job->mark.property.size), all = (uint16_t)bits;
    set_row_i64(fact + SEGLOG_FACT_PHY_OFFSET_AT, row_i64(row + SEGLOG_ROW_PHY_OFFSET_AT));
    set_row_i64(fact + SEGLOG_FACT_QUEUE_OFFSET_AT, record->queue_offset);
    set_row_i64(fact + SEGLOG_FACT_STORE_TIMESTAMP_MS_AT, record->store_timestamp_ms);
    set_row_i64(fact + SEGLOG_FACT_KEY_HIGH_AT, (int64_t)high);
    set_row_i64(fact + SEGLOG_FACT_KEY_LOW_AT, (int64_t)low);
    set_row_i32(fact + SEGLOG_FACT_SIZE_BYTES_AT, row_i32(row + SEGLOG_ROW_SIZE_BYTES_AT));
    set_row_i32(fact + SEGLOG_FACT_QUEUE_AT, queue);
    memcpy(fact + SEGLOG_FACT_PLACEHOLDER_BYTES_AT, &least, sizeof least);
    memcpy(fact + SEGLOG_FACT_BITS_AT, &all, sizeof all);
}

static void facts_job(void *state)
{
    struct facts_job *job = state;
    struct record record;
    for (; job->done < job->count; job->done++) {
        const uint8_t *row = job->rows + job->done * SEGLOG_ROW_SIZE;
        int64_t place = row_i64(row + SEGLOG_ROW_PHY_OFFSET_AT) - job->phy_offset;
        if (place < 0 || !record_read_at(job->log, (size_t)place, job->phy_offset, &record) ||
            record.bytes.size != (size_t)row_i32(row + SEGLOG_ROW_SIZE_BYTES_AT))
            return;
        fact_of(job, &record, row, job->facts + job->done * SEGLOG_FACT_SIZE);
    }
}

PyObject *py_record_facts(PyObject *Py_UNUSED(module), PyObject *args)
{
    enum { VIEW, ROWS, ASKS, MARK, FACTS, BUFFERS };
    Py_buffer in[BUFFERS];
    long long phy_offset;
    unsigned long long salt;
    int flag;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*Ly*y*Kiy*w*", &in[VIEW], &phy_offset, &in[ROWS], &in[ASKS], &salt, &flag,
                          &in[MARK], &in[FACTS]))
        return NULL;
    struct facts_job job = {
        .log = span_in(&in[VIEW]),
        .phy_offset = phy_offset,
        .rows = in[ROWS].buf,
        .count = (size_t)in[ROWS].len / SEGLOG_ROW_SIZE,
        .asks = span_in(&in[ASKS]),
        .salt = salt,
        .mark = {flag, span_in(&in[MARK])},
        .facts = in[FACTS].buf,
    };
    if (phy_offset < 0 || (size_t)in[FACTS].len / SEGLOG_FACT_SIZE < job.count)
        PyErr_SetString(PyExc_ValueError, "facts are those of rows within the log, and have room");
    else if (call_guarded(&in[VIEW], facts_job, &job))
        result = PyLong_FromSize_t(job.done);
    buffers_release(in, BUFFERS);
    return result;
}

/* Finds the last record of each key in its queue, with a hash table of row numbers by key. */
static bool is_same_key(const uint8_t *one, const uint8_t *other)
{
    return row_i64(one + SEGLOG_KEYED_KEY_HIGH_AT) == row_i64(other + SEGLOG_KEYED_KEY_HIGH_AT) &&
           row_i64(one + SEGLOG_KEYED_KEY_LOW_AT) == row_i64(other + SEGLOG_KEYED_KEY_LOW_AT) &&
           row_i32(one + SEGLOG_KEYED_QUEUE_AT) == row_i32(other + SEGLOG_KEYED_QUEUE_AT);
}

static void find_last(const uint8_t *rows, size_t count, uint32_t *table, size_t mask, uint8_t *last)
{
    for (size_t i = 0; i < count; i++) {
        const uint8_t *row = rows + i * SEGLOG_KEYED_SIZE;
        uint64_t hash = (uint64_t)row_i64(row + SEGLOG_KEYED_KEY_HIGH_AT) +
                        (uint64_t)(uint32_t)row_i32(row + SEGLOG_KEYED_QUEUE_AT) * STEP;
        size_t at = (size_t)(hash ^ hash >> 32) & mask;
        while (table[at] && !is_same_key(row, rows + (table[at] - 1) * (size_t)SEGLOG_KEYED_SIZE))
            at = (at + 1) & mask;
        size_t before = table[at];
        last[i] = !before || row_i64(row + SEGLOG_KEYED_QUEUE_OFFSET_AT) >=
                                 row_i64(rows + (before - 1) * SEGLOG_KEYED_SIZE +
                                         SEGLOG_KEYED_QUEUE_OFFSET_AT);
        if (!last[i])
            continue;
        if (before)
            last[before - 1] = 0;
        table[at] = (uint32_t)(i + 1);
    }
}

PyObject *py_last_of_keys(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer rows, last;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*w*", &rows, &last))
        return NULL;
    size_t count = (size_t)rows.len / SEGLOG_KEYED_SIZE, room = 2;
    while (room < 2 * count)
        room *= 2;
    if ((size_t)last.len < count || count >= UINT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "there is a byte for each row, and fewer than 2**32 of them");
    } else {
        uint32_t *table = calloc(room, sizeof *table);
        if (!table) {
            PyErr_NoMemory();
        } else {
            Py_BEGIN_ALLOW_THREADS
            find_last(rows.buf, count, table, room - 1, last.buf);
            Py_END_ALLOW_THREADS
            free(table);
            result = Py_NewRef(Py_None);
        }
    }
    buffers_release(&last, 1);
    buffers_release(&rows, 1);
    return result;
}
