/* From queue units to records, as `read_queue` in seglog/storage/get.py goes: the plain case, in which every
 * unit leads to a message that lies in the log as it was written.
 */
#ifndef SEGLOG_PULL_H
#define SEGLOG_PULL_H

#include "found_type.h"
#include "maps.h"
#include "tag_set.h"

/* What is asked for; `wanted` is NULL for all messages. */
struct pull_question {
    const uint8_t *units;
    size_t unit_count;
    size_t max_count; /* 1 or more */
    int64_t max_bytes;
    int64_t end_phy_offset;
    const TagSet *wanted;
    int64_t living_from, living_to; /* of these units no record is a tombstone */
};

enum pull_end {
    PULL_DONE,
    PULL_UNUSUAL, /* only Python knows */
    PULL_UNCHECKED, /* a file's length was not looked at since `now_ms` */
    PULL_NO_MEMORY,
};

struct pull {
    struct found_records records;
    size_t examined; /* units */
    struct file_map *unchecked;
};

/* Nothing else runs meanwhile. The records are the caller's only if it ends with PULL_DONE. */
enum pull_end pull_units(const struct pull_question *question, const Maps *log, int64_t now_ms,
                         struct pull *pull);

/* Bytes of the record that starts at a place of a file whose length was checked; 0 unless it is a plain one
 * that ends before `end_phy_offset`.
 */
int64_t plain_record_bytes(const Maps *log, const struct file_map *file, int64_t phy_offset,
                           int64_t end_phy_offset);

#endif
