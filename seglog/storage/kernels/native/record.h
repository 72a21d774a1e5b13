/* Records of the commit log, as seglog/storage/format examines them: checksums, fields, properties, keys. All
 * of it runs without the GIL.
 */
#ifndef SEGLOG_RECORD_H
#define SEGLOG_RECORD_H

#include "bytes.h"

/* Makes the tables of CRC-32 (zlib's and RocketMQ's: polynomial 0x04C11DB7, reflected) and looks at the CPU;
 * to be called before anything else, as often as one likes.
 */
void crc32_prepare(void);

/* Whether carry-less multiplication serves, for messages of some length. */
bool crc32_multiplies(void);

uint32_t crc32_of(struct span bytes);

/* Continues the CRC of what stands before the bytes, 0 before any. */
uint32_t crc32_on(uint32_t crc, struct span bytes);

/* The CRC of two spans, by that of each and the size of the second, which is at least 4. Only where
 * crc32_multiplies(). Quickest if the size is that of the call before.
 */
uint32_t crc32_joined(uint32_t first, uint32_t second, size_t second_size);

/* What eight bytes leave in a register of zeros; not inverted, so linear. */
uint32_t crc32_remainder(const uint8_t bytes[8]);

/* What a remainder becomes when so many zeros follow. Quickest if the size is that of the call before. */
uint32_t crc32_behind_zeros(uint32_t remainder, size_t size);

/* Writes the property `__CRC32#` of a record that has this CRC up to there. */
void crc_property_write(uint32_t crc, uint8_t *property);

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

/* The same at a place of a log that begins at `phy_offset`; there is none where its offset would not fit its
 * field. */
static inline bool record_read_at(struct span log, size_t position, int64_t phy_offset, struct record *found)
{
    settle_memory();
    if (position > log.size || position > (uint64_t)(INT64_MAX - phy_offset))
        return false;
    return record_read(span_after(log, position), phy_offset + (int64_t)position, found);
}

/* Whether its checksums are right, and its properties whole where none covers them. */
bool record_verifies(const struct record *record);

bool record_has_crc_property(const struct record *record);

/* Whether it stands for a message that a compaction dropped; applications may use the flag too. */
bool record_is_placeholder(const struct record *record);

/* Where the store time lies, by the kinds of both addresses. */
size_t record_store_timestamp_at(int32_t sys_flag);

/* False for PREPARED and ROLLBACK records. */
static inline bool takes_queue_offset(int32_t sys_flag)
{
    int32_t transaction = sys_flag & SEGLOG_TRANSACTION_MASK;
    return transaction != SEGLOG_TRANSACTION_PREPARED && transaction != SEGLOG_TRANSACTION_ROLLBACK;
}

static inline bool is_tombstone(const uint8_t *record)
{
    return read_i32(record + SEGLOG_HEADS_0_FLAG_AT) == SEGLOG_LOST_FLAG;
}

/* The value of a property, empty if it has none; of several the last that has one counts. `name` ends with
 * the 0x01 that ends it.
 */
struct span property_value(struct span properties, struct span name);

/* The values under which the key index has a record, as property_value() finds each. */
struct index_values {
    struct span unique_key, keys, tags;
};

/* Finds them in one pass. */
struct index_values index_values_of(struct span properties);

bool properties_hold(struct span properties, struct span text);

/* Whether they hold the zeros of a write that did not reach the disk, or a CRC property out of its place. */
bool properties_look_torn(struct span properties);

/* The tags code of a queue unit, by the value of the record's TAGS: in the delay topic the time of delivery,
 * elsewhere the hash of the tag, 0 without one.
 */
int64_t unit_tags_code(const struct record *record, struct span tag);

/* Java's String.hashCode of UTF-8, continued from what stands before, 0 before any. What is not UTF-8 counts
 * as U+FFFD, as often as Python's "replace" and Java's decoder put it.
 */
uint32_t java_hash(uint32_t before, struct span text);

/* Java's hash of what stands before the keys of a topic: its name and `#`. */
uint32_t key_hash_before(struct span topic);

/* The keys of records, as seglog/storage/format/index/index_keys.py names them: rows of SEGLOG_KEY_ROW_SIZE
 * bytes, and more that the key index must know of a stretch of the log. All zero before; memory is that of
 * malloc.
 *
 * rows: ours, unless `are_borrowed`: then they have the room that they have.
 * lost: places of tombstones, which have no keys here.
 * with_crc: how many records have a record CRC.
 * placeholders: how many stand for messages that a compaction dropped.
 */
struct log_keys {
    uint8_t *rows;
    size_t *lost;
    size_t count, room, lost_count, lost_room, with_crc, placeholders;
    bool are_borrowed;
};

enum noted { NOTED, NO_ROOM, NO_MEMORY };

/* Looks at one record that lies at `position` of the log; without room for its keys it changes nothing.
 *
 * values: as found in its properties.
 * hash_before: key_hash_before() of its topic.
 */
enum noted log_keys_note(struct log_keys *keys, const struct record *record,
                         const struct index_values *values, uint32_t hash_before, size_t position,
                         int64_t phy_offset, bool tags);

void log_keys_free(struct log_keys *keys);

#endif
