/* The tags code of a queue unit, as seglog/storage/format/record.py computes it. */
#ifndef SEGLOG_TAGS_H
#define SEGLOG_TAGS_H

#include "bytes.h"

/* In the delay topic the time of delivery, elsewhere the hash of the tag, 0 without one. */
int64_t tags_code_by_value(struct span topic, struct span properties, struct span tag, int64_t store_timestamp_ms);

/* The same where the tag was not looked up yet. */
int64_t unit_tags_code(struct span topic, struct span properties, int64_t store_timestamp_ms);

#endif
