/* Rows of records brought together by their queues. */
#ifndef SEGLOG_GROUPS_H
#define SEGLOG_GROUPS_H

#include <stdbool.h>

#include "bytes.h"

/* What the rows of one queue come to. */
struct group {
    size_t count, end; /* end: behind its last row among all */
    int64_t size_bytes, least_ms, greatest_ms;
};

/* Puts the rows that have a place in a plain queue together, each queue's in the order that they have.
 *
 * rows: `count` rows of SEGLOG_ROW_SIZE bytes, in the byte order of the machine.
 * groups: one for each queue, all zero; the rows' numbers are below `group_count`.
 * sorted: room for as many rows; queues follow each other by their numbers.
 *
 * Returns false if a row has a number that is none, or belongs to an inner batch, which has another kind of
 * queue.
 */
bool rows_group(const uint8_t *rows, size_t count, struct group *groups, size_t group_count, uint8_t *sorted);

#endif
