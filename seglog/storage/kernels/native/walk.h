/* From record to record, as far as they are whole and right; and to the next one that proves itself. */
#ifndef SEGLOG_WALK_H
#define SEGLOG_WALK_H

#include <stdbool.h>

#include "bytes.h"
#include "queues.h"
#include "window_keys.h"

/* What a walk saw. All zero before it.
 *
 * rows: `count` rows of SEGLOG_ROW_SIZE bytes, in the byte order of the machine; their queues are numbered
 *     by `queues`. Ours, unless `are_borrowed`: then there is room for `room` of them, and the walk stops
 *     when it is full.
 * saying_more: where those records lie whose properties say more about queues.
 * position: where the walk stopped: no record that is whole and right lies there, or `is_full`.
 * keys: if there, takes what the key index must know of the records, tags too if `tags`; the walk stops when
 *     that is full.
 */
struct walk {
    uint8_t *rows;
    size_t *saying_more;
    size_t count, room, more_count, more_room, position;
    struct queues queues;
    struct window_keys *keys;
    bool are_borrowed, tags, is_full;
};

/* Walks on from walk->position up to the first record at or behind `until`; false without memory. */
bool walk_on(struct walk *walk, struct span log, int64_t phy_offset, size_t until, bool verify);

/* Puts the numbers that the caller has for queues in place of our own. */
void walk_renumber(struct walk *walk, const int32_t *numbers);

void walk_free(struct walk *walk);

/* Where between `start` and `until` the next record proves itself; the size of the log if none does. */
size_t find_record(struct span log, int64_t phy_offset, size_t start, size_t until);

#endif
