/* From record to record, as far as they are whole and right; and to the next one that proves itself. */
#ifndef SEGLOG_WALK_H
#define SEGLOG_WALK_H

#include <stdbool.h>

#include "bytes.h"
#include "queues.h"

/* What a walk saw. All zero before it.
 *
 * rows: `count` rows of SEGLOG_ROW_SIZE bytes, in the byte order of the machine; their queues are numbered
 *     by `queues`.
 * saying_more: where those records lie whose properties say more about queues.
 * position: where the walk stopped, because no record that is whole and right lies there.
 */
struct walk {
    uint8_t *rows;
    size_t *saying_more;
    size_t count, room, more_count, more_room, position;
    struct queues queues;
};

/* Walks from the start of the log; false without memory. */
bool walk_on(struct walk *walk, struct span log, int64_t phy_offset, bool verify);

/* Puts the numbers that the caller has for queues in place of our own. */
void walk_renumber(struct walk *walk, const int32_t *numbers);

void walk_free(struct walk *walk);

/* Where at or behind `start` the next record proves itself; the size of the log if none does. */
size_t find_record(struct span log, int64_t phy_offset, size_t start);

#endif
