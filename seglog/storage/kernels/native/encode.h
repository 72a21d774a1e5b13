/* The bytes of new records, as seglog/storage/kernels/append.py makes them. */
#ifndef SEGLOG_ENCODE_H
#define SEGLOG_ENCODE_H

#include <stdbool.h>

#include "../layout.h"
#include "bytes.h"

struct host {
    uint8_t address[SEGLOG_IPV6_BYTES];
    size_t address_size; /* 4 or 16 */
    int32_t port;
};

/* What a writer says of a record; its place and store time come later. */
struct draft_values {
    struct span topic, body, properties;
    struct host born_host, store_host;
    int64_t born_timestamp_ms, prepared_transaction_offset;
    int32_t queue_id, sys_flag, flag, reconsume_times;
    bool record_crc;
};

/* Where a record goes, and when. */
struct place {
    int64_t queue_offset, phy_offset, store_timestamp_ms;
};

/* False for PREPARED and ROLLBACK records. */
bool takes_queue_offset(int32_t sys_flag);

/* Whether these are values that draft_encode takes: V1, properties that need no change, sizes that fit. */
bool draft_is_usual(const struct draft_values *values);

/* The size of the record, its own check included. */
size_t draft_size(const struct draft_values *values);

/* Writes all but place, time and own check to `record`, which has room for draft_size. */
void draft_encode(const struct draft_values *values, uint8_t *record);

/* Fills in what is known within the append lock, the own check last: it covers the rest. */
void draft_place(uint8_t *record, size_t size, bool record_crc, int64_t queue_offset, int64_t phy_offset,
                 int64_t store_timestamp_ms);

/* Writes a whole record to where readers may look, its size last. */
void record_write(const struct draft_values *values, const struct place *place, uint8_t *target);

/* Copies a record to where readers may look, its size last: they see either none or a whole one. */
void draft_publish(const uint8_t *record, size_t size, uint8_t *target);

#endif
