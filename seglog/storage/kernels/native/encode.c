#include "encode.h"

#include <string.h>

#include "../layout.h"
#include "crc32.h"
#include "own_check.h"
#include "properties.h"

enum { IPV4 = SEGLOG_IPV4_BYTES, IPV6 = SEGLOG_IPV6_BYTES, SIZE_FIELD = SEGLOG_FILLER_MAGIC_AT };

/* Writes one field behind the other. */
struct pen {
    uint8_t *at;
};

static void put_u32(struct pen *pen, uint32_t value)
{
    write_u32(pen->at, value);
    pen->at += 4;
}

static void put_i32(struct pen *pen, int32_t value)
{
    put_u32(pen, (uint32_t)value);
}

static void put_i64(struct pen *pen, int64_t value)
{
    write_u64(pen->at, (uint64_t)value);
    pen->at += 8;
}

static void put_i16(struct pen *pen, size_t value)
{
    *pen->at++ = (uint8_t)(value >> 8);
    *pen->at++ = (uint8_t)value;
}

static void put_bytes(struct pen *pen, struct span bytes)
{
    if (bytes.size)
        memcpy(pen->at, bytes.at, bytes.size);
    pen->at += bytes.size;
}

static void put_host(struct pen *pen, const struct host *host)
{
    put_bytes(pen, span_of(host->address, host->address_size));
    put_i32(pen, host->port);
}

static size_t own_check_size(const struct draft_values *values)
{
    return values->record_crc ? SEGLOG_CRC_PROPERTY_BYTES : 0;
}

static bool has_address(const struct host *host)
{
    return host->address_size == IPV4 || host->address_size == IPV6;
}

static bool are_usual_properties(struct span properties, bool record_crc)
{
    static const char name[] = SEGLOG_CRC_NAME;
    if (properties.size == 0)
        return true;
    if (properties_hold(properties, span_of((const uint8_t *)name, sizeof name - 1)))
        return false;
    if (record_crc)
        return properties.at[properties.size - 1] == SEGLOG_ENTRY_END;
    return !properties_look_torn(properties);
}

bool draft_is_usual(const struct draft_values *values)
{
    static const char delayed[] = SEGLOG_SCHEDULE_TOPIC;
    struct span topic = values->topic;
    if (topic.size > SEGLOG_MAX_TOPIC_BYTES)
        return false;
    if (topic.size == sizeof delayed - 1 && memcmp(topic.at, delayed, topic.size) == 0)
        return false;
    if (!has_address(&values->born_host) || !has_address(&values->store_host))
        return false;
    if (values->properties.size + own_check_size(values) > SEGLOG_MAX_PROPERTIES_BYTES)
        return false;
    return values->body.size <= INT32_MAX / 2 && are_usual_properties(values->properties, values->record_crc);
}

size_t draft_size(const struct draft_values *values)
{
    size_t addresses = values->born_host.address_size + values->store_host.address_size;
    return SEGLOG_MIN_RECORD_BYTES - 2 * IPV4 + addresses + values->body.size + values->topic.size +
           values->properties.size + own_check_size(values);
}

static int32_t stored_sys_flag(const struct draft_values *values)
{
    int32_t flag = values->sys_flag & ~SEGLOG_HOST_BITS;
    if (values->born_host.address_size != IPV4)
        flag |= SEGLOG_BORN_HOST_V6;
    if (values->store_host.address_size != IPV4)
        flag |= SEGLOG_STORE_HOST_V6;
    return flag;
}

bool takes_queue_offset(int32_t sys_flag)
{
    int32_t transaction = sys_flag & SEGLOG_TRANSACTION_MASK;
    return transaction != SEGLOG_TRANSACTION_PREPARED && transaction != SEGLOG_TRANSACTION_ROLLBACK;
}

static void put_head(struct pen *pen, const struct draft_values *values, const struct place *place)
{
    put_i32(pen, (int32_t)draft_size(values));
    put_u32(pen, SEGLOG_MAGIC_V1);
    put_u32(pen, crc32_of(values->body) & SEGLOG_CRC_MASK);
    put_i32(pen, values->queue_id);
    put_i32(pen, values->flag);
    put_i64(pen, place->queue_offset);
    put_i64(pen, place->phy_offset);
    put_i32(pen, stored_sys_flag(values));
    put_i64(pen, values->born_timestamp_ms);
    put_host(pen, &values->born_host);
    put_i64(pen, place->store_timestamp_ms);
    put_host(pen, &values->store_host);
    put_i32(pen, values->reconsume_times);
    put_i64(pen, values->prepared_transaction_offset);
    put_i32(pen, (int32_t)values->body.size);
}

/* What follows the head, without the own check. */
static void put_rest(struct pen *pen, const struct draft_values *values)
{
    put_bytes(pen, values->body);
    *pen->at++ = (uint8_t)values->topic.size;
    put_bytes(pen, values->topic);
    put_i16(pen, values->properties.size + own_check_size(values));
    put_bytes(pen, values->properties);
}

void draft_encode(const struct draft_values *values, uint8_t *record)
{
    static const struct place nowhere;
    struct pen pen = {record};
    put_head(&pen, values, &nowhere);
    put_rest(&pen, values);
}

void record_write(const struct draft_values *values, const struct place *place, uint8_t *target)
{
    uint8_t head[SEGLOG_HEADS_48_SIZE];
    struct pen head_pen = {head};
    put_head(&head_pen, values, place);
    size_t head_size = (size_t)(head_pen.at - head);
    memcpy(target + SIZE_FIELD, head + SIZE_FIELD, head_size - SIZE_FIELD);
    struct pen pen = {target + head_size};
    put_rest(&pen, values);
    if (values->record_crc) {
        struct span rest = span_of(target + head_size, (size_t)(pen.at - target) - head_size);
        own_check_write(crc32_on(crc32_of(span_of(head, head_size)), rest), pen.at);
    }
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memcpy(target, head, SIZE_FIELD);
}

static size_t store_timestamp_at(const uint8_t *record)
{
    bool is_v6 = read_i32(record + SEGLOG_SYS_FLAG_AT) & SEGLOG_BORN_HOST_V6;
    return is_v6 ? SEGLOG_HEADS_16_STORE_TIMESTAMP_MS_AT : SEGLOG_HEADS_0_STORE_TIMESTAMP_MS_AT;
}

void draft_place(uint8_t *record, size_t size, bool record_crc, int64_t queue_offset, int64_t phy_offset,
                 int64_t store_timestamp_ms)
{
    write_u64(record + SEGLOG_HEADS_0_QUEUE_OFFSET_AT, (uint64_t)queue_offset);
    write_u64(record + SEGLOG_PHY_OFFSET_AT, (uint64_t)phy_offset);
    write_u64(record + store_timestamp_at(record), (uint64_t)store_timestamp_ms);
    size_t covered = size - SEGLOG_CRC_PROPERTY_BYTES;
    if (record_crc)
        own_check_write(crc32_of(span_of(record, covered)), record + covered);
}

void draft_publish(const uint8_t *record, size_t size, uint8_t *target)
{
    memcpy(target + SIZE_FIELD, record + SIZE_FIELD, size - SIZE_FIELD);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memcpy(target, record, SIZE_FIELD);
}
