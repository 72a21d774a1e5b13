/* One record of the commit log, as seglog/storage/format/record.py examines it. */
#ifndef SEGLOG_RECORD_H
#define SEGLOG_RECORD_H

#include <stdbool.h>

#include "bytes.h"

/* A whole record; its parts lie within it. */
struct record {
    struct span bytes, body, topic, properties;
    int64_t queue_offset, store_timestamp_ms;
    uint32_t body_crc;
    int32_t queue_id, sys_flag;
};

/* Reads the record at the start of the bytes if there is one that lies at `phy_offset` in the log, fits
 * the bytes and has sizes that add up.
 */
bool record_read(struct span bytes, int64_t phy_offset, struct record *found);

/* Whether its checksums are right, and its properties whole where none covers them. */
bool record_verifies(const struct record *record);

#endif
