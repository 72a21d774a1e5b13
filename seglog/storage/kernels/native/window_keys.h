/* What the key index must know of a stretch of the log that was walked before. */
#ifndef SEGLOG_WINDOW_KEYS_H
#define SEGLOG_WINDOW_KEYS_H

#include <stdbool.h>

#include "bytes.h"
#include "index_keys.h"

/* All zero before; memory is that of malloc, because this runs without the GIL.
 *
 * keys: ours, unless `are_borrowed`: then they have the room that they have.
 * lost: places of tombstones, which have no keys here.
 * with_crc: how many records have a record CRC.
 */
struct window_keys {
    struct key_rows keys;
    size_t *lost;
    size_t lost_count, lost_room, with_crc;
    bool are_borrowed;
};

enum noted { NOTED, NO_ROOM, NO_MEMORY };

/* Looks at one record that lies at `position` of the log; without room for its keys it changes nothing.
 *
 * values: as found in its properties.
 * hash_before: key_hash_before() of its topic.
 */
enum noted window_keys_note(struct window_keys *window, const struct record *record,
                            const struct index_values *values, uint32_t hash_before, size_t position,
                            int64_t phy_offset, bool tags);

/* Looks at the records from the start of the log on, up to the first that is not whole; false without
 * memory. Checksums are not looked at.
 */
bool window_keys_of(struct window_keys *window, struct span log, int64_t phy_offset, bool tags);

void window_keys_free(struct window_keys *window);

#endif
