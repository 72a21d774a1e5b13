/* The keys under which the key index has records, as seglog/storage/format/index_keys.py tells them. */
#ifndef SEGLOG_INDEX_KEYS_H
#define SEGLOG_INDEX_KEYS_H

#include <stdbool.h>

#include "bytes.h"

/* Keys found. All zero before.
 *
 * rows: `count` keys of SEGLOG_KEY_ROW_SIZE bytes, in log order and in the byte order of the machine.
 */
struct index_keys {
    uint8_t *rows;
    size_t count, room;
};

/* Adds the keys of the records from the start of the log on, up to the first that is not whole; false
 * without memory. Checksums are not looked at.
 */
bool index_keys_of(struct index_keys *keys, struct span log, int64_t phy_offset, bool with_tags);

#endif
