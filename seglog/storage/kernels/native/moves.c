/* Moves records to another place of the log: copies them with a new physical offset and record CRC, or replaces
 * them by placeholders.
 */

#include "python_api.h"
#include "record.h"

enum { PLACE_END = SEGLOG_HEADS_0_PHY_OFFSET_AT + 8, KEPT_BITS = SEGLOG_HOST_BITS | SEGLOG_TRANSACTION_MASK };

struct move_job {
    struct span source;
    int64_t source_phy_offset;
    const int64_t *starts, *sizes;
    const uint8_t *are_replaced;
    size_t count, done;
    uint8_t *target;
    size_t room, end;
    int64_t phy_offset;
    int32_t flag;
    struct span mark;
};

/* Returns the value of the digits, least significant first; any bytes give some number. */
static uint32_t digits_read(const uint8_t *digits)
{
    uint64_t value = 0, power = 1;
    for (int i = 0; i < SEGLOG_CRC_DIGITS; i++, power *= 10)
        value += (uint64_t)(uint8_t)(digits[i] - '0') * power;
    return (uint32_t)value & SEGLOG_CRC_MASK;
}

/* Updates the record CRC for a new physical offset. CRC-32 is linear: if two records differ in a few bits, their
 * checksums differ by the checksum of a record of only those bits. So a record that was damaged before does
 * not verify after the move either.
 */
static void move_crc(uint8_t *record, size_t size, uint64_t differing)
{
    uint8_t *property = record + size - SEGLOG_CRC_PROPERTY_BYTES;
    uint8_t place[8];
    write_i64(place, (int64_t)differing);
    uint32_t change = crc32_behind_zeros(crc32_remainder(place), (size_t)(property - record) - PLACE_END);
    crc_property_write(digits_read(property + sizeof SEGLOG_CRC_NAME - 1) ^ (change & SEGLOG_CRC_MASK),
                       property);
}

static bool ends_with_crc(const uint8_t *record, size_t size)
{
    const size_t name_size = sizeof SEGLOG_CRC_NAME - 1;
    return size >= PLACE_END + SEGLOG_CRC_PROPERTY_BYTES &&
           memcmp(record + size - SEGLOG_CRC_PROPERTY_BYTES, SEGLOG_CRC_NAME, name_size) == 0;
}

static bool copy_record(const struct move_job *job, size_t start, size_t size, uint8_t *record,
                        int64_t phy_offset)
{
    if (size < SEGLOG_MIN_RECORD_BYTES || start > job->source.size || size > job->source.size - start)
        return false;
    memcpy(record, job->source.at + start, size);
    int64_t before = read_i64(record + SEGLOG_HEADS_0_PHY_OFFSET_AT);
    write_i64(record + SEGLOG_HEADS_0_PHY_OFFSET_AT, phy_offset);
    if (ends_with_crc(record, size))
        move_crc(record, size, (uint64_t)before ^ (uint64_t)phy_offset);
    return true;
}

/* Writes a placeholder: the head of the record, its topic, and as properties the mark and the CRC, if `size` has
 * room for them. */
static bool write_placeholder(const struct move_job *job, size_t start, size_t size, uint8_t *target,
                              int64_t phy_offset)
{
    struct record record;
    if (!record_read_at(job->source, start, job->source_phy_offset, &record))
        return false;
    size_t head = (size_t)(record.body.at - record.bytes.at), length_bytes = 1;
    bool is_wide = record.topic.size > SEGLOG_MAX_TOPIC_BYTES;
    length_bytes += is_wide;
    size_t fixed = head + length_bytes + record.topic.size + sizeof(int16_t);
    size_t crc = record_has_crc_property(&record) ? SEGLOG_CRC_PROPERTY_BYTES : 0;
    if (size != fixed + crc && size != fixed + crc + job->mark.size)
        return false;
    size_t mark = size - fixed - crc;
    memcpy(target, record.bytes.at, head);
    write_u32(target, (uint32_t)size);
    write_u32(target + SEGLOG_MAGIC_AT, is_wide ? SEGLOG_MAGIC_V2 : SEGLOG_MAGIC_V1);
    write_u32(target + SEGLOG_HEADS_0_BODY_CRC_AT, 0);
    write_u32(target + SEGLOG_HEADS_0_FLAG_AT, (uint32_t)job->flag);
    write_i64(target + SEGLOG_HEADS_0_PHY_OFFSET_AT, phy_offset);
    write_u32(target + SEGLOG_HEADS_0_SYS_FLAG_AT, (uint32_t)(record.sys_flag & KEPT_BITS));
    write_u32(target + head - sizeof(int32_t), 0); /* the length of the body ends the head */
    uint8_t *at = target + head;
    if (is_wide)
        write_u16(at, record.topic.size);
    else
        at[0] = (uint8_t)record.topic.size;
    at += length_bytes;
    memcpy(at, record.topic.at, record.topic.size);
    at += record.topic.size;
    write_u16(at, mark + crc);
    at += sizeof(int16_t);
    if (mark)
        memcpy(at, job->mark.at, mark);
    if (crc)
        crc_property_write(crc32_of(span_of(target, size - crc)), at + mark);
    return true;
}

/* Cache lines of the CPU; the values are not exact, and need not be. */
enum { LINE = 64, RECORDS_AHEAD = 6, MOST_LINES_AHEAD = 24 };

/* Prefetches a record that will be moved soon. The moved records have gaps between them, at which the CPU's own
 * prefetching stops. This is only a hint: it reads nothing, and cannot fault.
 */
static void ask_for(const struct move_job *job, size_t number)
{
    uint64_t start = (uint64_t)job->starts[number], size = (uint64_t)job->sizes[number];
    if (start > job->source.size || size > job->source.size - start)
        return;
    if (start)
        __builtin_prefetch(job->source.at + start - 1); /* the end of the record before, with its CRC */
    for (size_t at = 0, lines = 0; at < size && lines < MOST_LINES_AHEAD; at += LINE, lines++)
        __builtin_prefetch(job->source.at + start + at);
}

static void move_job(void *state)
{
    struct move_job *job = state;
    for (; job->done < job->count; job->done++) {
        if (job->count - job->done > RECORDS_AHEAD)
            ask_for(job, job->done + RECORDS_AHEAD);
        uint64_t start = (uint64_t)job->starts[job->done], size = (uint64_t)job->sizes[job->done];
        if (size > job->room - job->end)
            return;
        uint8_t *target = job->target + job->end;
        int64_t phy_offset = job->phy_offset + (int64_t)job->end;
        if (!(job->are_replaced[job->done]
                  ? write_placeholder(job, (size_t)start, (size_t)size, target, phy_offset)
                  : copy_record(job, (size_t)start, (size_t)size, target, phy_offset)))
            return;
        job->end += (size_t)size;
    }
}

PyObject *py_move_records(PyObject *Py_UNUSED(module), PyObject *args)
{
    enum { VIEW, STARTS, SIZES, REPLACED, MARK, TARGET, BUFFERS };
    Py_buffer in[BUFFERS];
    long long source_phy_offset, phy_offset;
    int flag;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*Ly*y*y*iy*w*L", &in[VIEW], &source_phy_offset, &in[STARTS], &in[SIZES],
                          &in[REPLACED], &flag, &in[MARK], &in[TARGET], &phy_offset))
        return NULL;
    struct move_job job = {
        .source = span_in(&in[VIEW]),
        .source_phy_offset = source_phy_offset,
        .starts = in[STARTS].buf,
        .sizes = in[SIZES].buf,
        .are_replaced = in[REPLACED].buf,
        .count = (size_t)in[REPLACED].len,
        .target = in[TARGET].buf,
        .room = (size_t)in[TARGET].len,
        .phy_offset = phy_offset,
        .flag = flag,
        .mark = span_in(&in[MARK]),
    };
    size_t wanted = job.count * sizeof(int64_t);
    if (source_phy_offset < 0 || phy_offset < 0 || (size_t)in[STARTS].len != wanted ||
        (size_t)in[SIZES].len != wanted)
        PyErr_SetString(PyExc_ValueError, "each record has a start, a size, and whether it is replaced");
    else if (call_guarded(&in[VIEW], move_job, &job))
        result = PyLong_FromSize_t(job.done);
    buffers_release(in, BUFFERS);
    return result;
}
