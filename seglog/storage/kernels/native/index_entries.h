/* Entries of a file of the key index, one behind the other as they lie there. */
#ifndef SEGLOG_INDEX_ENTRIES_H
#define SEGLOG_INDEX_ENTRIES_H

#include <stdbool.h>

#include "bytes.h"

/* Where entries lead; is_sorted if none leads before the one before it. */
struct entries_extent {
    int64_t least, greatest;
    bool is_sorted;
};

/* Of `count` entries, one or more. */
struct entries_extent entries_extent_of(const uint8_t *entries, size_t count);

/* An entry that does not name the one before it in its slot. */
struct wrong_entry {
    uint32_t number, previous;
};

/* The newest entries of the slots of a file, by slot, in the byte order of the machine; 0 for none. */
struct newest_entries {
    int32_t *slots;
    uint32_t slot_count;
};

/* Puts `count` entries, of which the first has the number `first`, into the chains. Returns how many name
 * another entry before them than they should; the first `most` of those are in `wrong`.
 */
size_t entries_follow(const uint8_t *entries, size_t count, uint32_t first, struct newest_entries newest,
                      struct wrong_entry *wrong, size_t most);

/* Whether `count` entries are those of as many keys in the same order, with the times that they must have
 * in a file with this begin; a negative begin says nothing of times, nor does the file's first entry.
 *
 * rows: as index_keys.h says.
 */
bool entries_stand_for(const uint8_t *rows, const uint8_t *entries, size_t count, int64_t begin_ms,
                       bool starts_file);

#endif
