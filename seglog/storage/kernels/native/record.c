/* Reads records: the same checks in the same order as `examine`, which also says what is wrong. */

#include "record.h"

#include "../layout.h"

/* Where the fields lie whose place depends on the lengths of the two addresses. */
struct head {
    size_t size, store_timestamp_ms_at, body_bytes_at;
};

static struct head head_of(int32_t sys_flag)
{
    static const struct head v4 = {
        SEGLOG_HEADS_0_SIZE, SEGLOG_HEADS_0_STORE_TIMESTAMP_MS_AT, SEGLOG_HEADS_0_BODY_BYTES_AT};
    static const struct head born_v6 = {
        SEGLOG_HEADS_16_SIZE, SEGLOG_HEADS_16_STORE_TIMESTAMP_MS_AT, SEGLOG_HEADS_16_BODY_BYTES_AT};
    static const struct head store_v6 = {
        SEGLOG_HEADS_32_SIZE, SEGLOG_HEADS_32_STORE_TIMESTAMP_MS_AT, SEGLOG_HEADS_32_BODY_BYTES_AT};
    static const struct head both_v6 = {
        SEGLOG_HEADS_48_SIZE, SEGLOG_HEADS_48_STORE_TIMESTAMP_MS_AT, SEGLOG_HEADS_48_BODY_BYTES_AT};
    switch (sys_flag & SEGLOG_HOST_BITS) {
    case SEGLOG_BORN_HOST_V6:
        return born_v6;
    case SEGLOG_STORE_HOST_V6:
        return store_v6;
    case SEGLOG_HOST_BITS:
        return both_v6;
    default:
        return v4;
    }
}

/* Takes `size` bytes off the front of what is left of a record. */
static bool take(struct span *rest, int64_t size, struct span *taken)
{
    if (size < 0 || (uint64_t)size > rest->size)
        return false;
    *taken = span_of(rest->at, (size_t)size);
    *rest = span_of(rest->at + size, rest->size - (size_t)size);
    return true;
}

static bool take_topic(struct span *rest, uint32_t magic, struct span *topic)
{
    struct span length;
    if (!take(rest, magic == SEGLOG_MAGIC_V1 ? 1 : 2, &length))
        return false;
    int64_t size = length.size == 1 ? (int64_t)settled(length.at[0]) : read_i16(length.at);
    return take(rest, size, topic);
}

/* They take all that is left; a negative length is one of none, as for RocketMQ. */
static bool take_properties(struct span *rest, struct span *properties)
{
    struct span length;
    if (!take(rest, 2, &length))
        return false;
    int16_t size = read_i16(length.at);
    return take(rest, size > 0 ? size : 0, properties) && rest->size == 0;
}

static bool read_tail(struct span head_bytes, struct head head, uint32_t magic, struct record *found)
{
    struct span rest = span_of(head_bytes.at + head.size, head_bytes.size - head.size);
    return take(&rest, read_i32(head_bytes.at + head.body_bytes_at), &found->body) &&
           take_topic(&rest, magic, &found->topic) && take_properties(&rest, &found->properties);
}

bool record_read(struct span bytes, int64_t phy_offset, struct record *found)
{
    if (bytes.size < SEGLOG_MIN_RECORD_BYTES)
        return false;
    const uint8_t *at = bytes.at;
    int32_t size = read_i32(at + SEGLOG_HEADS_0_SIZE_BYTES_AT);
    uint32_t magic = read_u32(at + SEGLOG_HEADS_0_MAGIC_AT);
    if (magic != SEGLOG_MAGIC_V1 && magic != SEGLOG_MAGIC_V2)
        return false;
    if (size < SEGLOG_MIN_RECORD_BYTES || (size_t)size > bytes.size)
        return false;
    found->queue_id = read_i32(at + SEGLOG_HEADS_0_QUEUE_ID_AT);
    found->queue_offset = read_i64(at + SEGLOG_HEADS_0_QUEUE_OFFSET_AT);
    if (read_i64(at + SEGLOG_HEADS_0_PHY_OFFSET_AT) != phy_offset || found->queue_id < 0 ||
        found->queue_offset < 0)
        return false;
    found->bytes = span_of(at, (size_t)size);
    found->sys_flag = read_i32(at + SEGLOG_HEADS_0_SYS_FLAG_AT);
    struct head head = head_of(found->sys_flag);
    if (found->bytes.size < head.size)
        return false;
    found->body_crc = read_u32(at + SEGLOG_HEADS_0_BODY_CRC_AT);
    found->store_timestamp_ms = read_i64(at + head.store_timestamp_ms_at);
    return read_tail(found->bytes, head, magic, found);
}
