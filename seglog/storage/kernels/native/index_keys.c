#include "index_keys.h"

#include <string.h>

#include "../layout.h"
#include "guard.h"
#include "java_hash.h"
#include "record.h"
#include "rows.h"

#define TEXT(literal) span_of((const uint8_t *)(literal), sizeof(literal) - 1)

/* The magnitude of Java's hash, 0 for the one without. */
static int32_t magnitude(uint32_t hash)
{
    int32_t code = (int32_t)hash;
    return code >= 0 ? code : code == INT32_MIN ? 0 : -code;
}

/* Adds a key; where there is no room for it, it is only counted. */
static void add(struct key_rows *keys, uint32_t hash, const struct record *record, int64_t phy_offset)
{
    if (keys->count < keys->room) {
        uint8_t *row = keys->rows + keys->count * SEGLOG_KEY_ROW_SIZE;
        set_row_i32(row + SEGLOG_KEY_ROW_KEY_HASH_AT, magnitude(hash));
        set_row_i64(row + SEGLOG_KEY_ROW_PHY_OFFSET_AT, phy_offset);
        set_row_i64(row + SEGLOG_KEY_ROW_STORE_TIMESTAMP_MS_AT, record->store_timestamp_ms);
    }
    keys->count++;
}

/* A piece between single spaces; an empty one is no key. */
static struct span take_piece(struct span *joined)
{
    const uint8_t *space = memchr(joined->at, ' ', joined->size);
    size_t size = space ? (size_t)(space - joined->at) : joined->size;
    size_t taken = space ? size + 1 : size;
    struct span piece = span_of(joined->at, size);
    *joined = span_of(joined->at + taken, joined->size - taken);
    return piece;
}

uint32_t key_hash_before(struct span topic)
{
    return java_hash_on(java_hash_on(0, topic), TEXT("#"));
}

void keys_of_values(struct key_rows *keys, const struct record *record, const struct index_values *values,
                    uint32_t hash_before, int64_t phy_offset, bool tags)
{
    if ((record->sys_flag & SEGLOG_TRANSACTION_MASK) == SEGLOG_TRANSACTION_ROLLBACK)
        return;
    if (values->unique_key.size)
        add(keys, java_hash_on(hash_before, values->unique_key), record, phy_offset);
    struct span joined = values->keys;
    while (joined.size) {
        struct span piece = take_piece(&joined);
        if (piece.size)
            add(keys, java_hash_on(hash_before, piece), record, phy_offset);
    }
    if (tags && values->tags.size) {
        uint32_t before_tag = java_hash_on(hash_before, TEXT("T#"));
        add(keys, java_hash_on(before_tag, values->tags), record, phy_offset);
    }
}

void keys_of_record(struct key_rows *keys, const struct record *record, int64_t phy_offset, bool tags)
{
    struct index_values values = index_values_of(record->properties);
    keys_of_values(keys, record, &values, key_hash_before(record->topic), phy_offset, tags);
}

static bool is_same(struct span one, struct span other)
{
    return one.size == other.size && memcmp(one.at, other.at, one.size) == 0;
}

bool record_has_key(const struct record *record, struct span key)
{
    struct index_values values = index_values_of(record->properties);
    if (values.unique_key.size && is_same(values.unique_key, key))
        return true;
    struct span joined = values.keys;
    while (joined.size)
        if (is_same(take_piece(&joined), key))
            return true;
    return false;
}

uint64_t key_digest(struct hash_seed seed, struct span topic, struct span key)
{
    struct hash_seed of_topic = {seed.first ^ keyed_hash(seed, topic), seed.second};
    uint64_t digest = keyed_hash(of_topic, key);
    return digest ? digest : 1;
}

size_t key_digests_of(const struct record *record, int32_t hash, struct hash_seed seed, uint64_t *digests,
                      size_t room)
{
    struct index_values values = index_values_of(record->properties);
    uint32_t before = key_hash_before(record->topic);
    struct span joined = values.keys, piece = values.unique_key;
    size_t count = 0;
    for (;;) {
        if (piece.size && magnitude(java_hash_on(before, piece)) == hash) {
            if (count < room)
                digests[count] = key_digest(seed, record->topic, piece);
            count++;
        }
        if (!joined.size)
            return count;
        piece = take_piece(&joined);
    }
}

size_t keys_of_log(struct key_rows *keys, struct span log, int64_t phy_offset, size_t position, bool tags)
{
    struct record record;
    for (;;) {
        settle_memory();
        if (position > (uint64_t)(INT64_MAX - phy_offset) ||
            !record_read(span_of(log.at + position, log.size - position), phy_offset + (int64_t)position,
                         &record))
            return position;
        size_t before = keys->count;
        keys_of_record(keys, &record, phy_offset + (int64_t)position, tags);
        if (keys->count > keys->room) {
            keys->count = before;
            return position;
        }
        position += record.bytes.size;
    }
}
