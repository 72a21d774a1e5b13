/* The keys of records, as seglog/storage/format/index_keys.py names them, in rows for the key index. */
#ifndef SEGLOG_INDEX_KEYS_H
#define SEGLOG_INDEX_KEYS_H

#include <stdbool.h>

#include "bytes.h"
#include "keyed_hash.h"
#include "properties.h"
#include "record.h"

/* Rows of SEGLOG_KEY_ROW_SIZE bytes, in the byte order of the machine. */
struct key_rows {
    uint8_t *rows;
    size_t count, room;
};

/* Java's hash of what stands before the keys of a topic: its name and `#`. */
uint32_t key_hash_before(struct span topic);

/* Adds the keys of a record whose values were found; where there is no room for one, it is only counted. */
void keys_of_values(struct key_rows *keys, const struct record *record, const struct index_values *values,
                    uint32_t hash_before, int64_t phy_offset, bool tags);

/* Adds the keys of a record; where there is no room for one, it is only counted. */
void keys_of_record(struct key_rows *keys, const struct record *record, int64_t phy_offset, bool tags);

/* Whether a record has a key, as its unique key or one of its keys. */
bool record_has_key(const struct record *record, struct span key);

/* A number of a key, other than 0, that hardly any other key has. */
uint64_t key_digest(struct hash_seed seed, struct span topic, struct span key);

/* Puts the numbers of those keys of a record that the index has under a hash, as far as there is room;
 * returns how many they are.
 */
size_t key_digests_of(const struct record *record, int32_t hash, struct hash_seed seed, uint64_t *digests,
                      size_t room);

/* Adds the keys of the records from `position` on, as far as they are whole, fit the log and have room for
 * all of their keys; returns where that ends. Checksums are not looked at.
 */
size_t keys_of_log(struct key_rows *keys, struct span log, int64_t phy_offset, size_t position, bool tags);

#endif
