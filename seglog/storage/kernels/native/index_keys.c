/* Memory comes from malloc, because this runs without the GIL. */

#include "index_keys.h"

#include <stdlib.h>
#include <string.h>

#include "../layout.h"
#include "java_hash.h"
#include "properties.h"
#include "record.h"

enum { FIRST_ROOM = 1024 };

static bool make_room(struct index_keys *keys)
{
    if (keys->count < keys->room)
        return true;
    size_t room = keys->room ? 2 * keys->room : FIRST_ROOM;
    uint8_t *grown = room > SIZE_MAX / SEGLOG_KEY_ROW_SIZE ? NULL : realloc(keys->rows, room * SEGLOG_KEY_ROW_SIZE);
    if (!grown)
        return false;
    keys->rows = grown;
    keys->room = room;
    return true;
}

/* Math.abs of Java, but 0 for the one number that has no opposite. */
static int32_t positive(int32_t hash)
{
    if (hash == INT32_MIN)
        return 0;
    return hash < 0 ? -hash : hash;
}

static bool add(struct index_keys *keys, const struct record *record, int64_t phy_offset, int32_t hash)
{
    if (!make_room(keys))
        return false;
    uint8_t *row = keys->rows + keys->count++ * SEGLOG_KEY_ROW_SIZE;
    int32_t key_hash = positive(hash);
    memcpy(row + SEGLOG_KEY_ROW_KEY_HASH_AT, &key_hash, sizeof key_hash);
    memcpy(row + SEGLOG_KEY_ROW_PHY_OFFSET_AT, &phy_offset, sizeof phy_offset);
    memcpy(row + SEGLOG_KEY_ROW_STORE_TIMESTAMP_MS_AT, &record->store_timestamp_ms, sizeof(int64_t));
    return true;
}

static struct span text(const char *characters)
{
    return span_of((const uint8_t *)characters, strlen(characters));
}

/* Adds a key for each piece between single spaces; nothing for an empty one. */
static bool add_pieces(struct index_keys *keys, const struct record *record, int64_t phy_offset,
                       int32_t prefix, struct span value)
{
    while (value.size) {
        const uint8_t *space = memchr(value.at, ' ', value.size);
        size_t size = space ? (size_t)(space - value.at) : value.size;
        if (size && !add(keys, record, phy_offset, java_hash_on(prefix, span_of(value.at, size))))
            return false;
        size_t taken = size + (space != NULL);
        value = span_of(value.at + taken, value.size - taken);
    }
    return true;
}

static bool add_record(struct index_keys *keys, const struct record *record, int64_t phy_offset,
                       bool with_tags)
{
    int32_t prefix = java_hash_on(java_hash(record->topic), text("#"));
    struct span unique = property_value(record->properties, text(SEGLOG_UNIQ_KEY_NAME "\001"));
    struct span joined = property_value(record->properties, text(SEGLOG_KEYS_NAME "\001"));
    if (unique.size && !add(keys, record, phy_offset, java_hash_on(prefix, unique)))
        return false;
    if (!add_pieces(keys, record, phy_offset, prefix, joined))
        return false;
    if (!with_tags)
        return true;
    struct span tag = property_value(record->properties, text(SEGLOG_TAGS_NAME "\001"));
    return !tag.size ||
           add(keys, record, phy_offset, java_hash_on(java_hash_on(prefix, text("T#")), tag));
}

bool index_keys_of(struct index_keys *keys, struct span log, int64_t phy_offset, bool with_tags)
{
    struct record record;
    size_t position = 0;
    while (log.size - position >= SEGLOG_MIN_RECORD_BYTES && position <= (uint64_t)(INT64_MAX - phy_offset)) {
        int64_t place = phy_offset + (int64_t)position;
        if (!record_read(span_of(log.at + position, log.size - position), place, &record))
            break;
        bool is_indexed = (record.sys_flag & SEGLOG_TRANSACTION_MASK) != SEGLOG_TRANSACTION_ROLLBACK;
        if (is_indexed && !add_record(keys, &record, place, with_tags))
            return false;
        position += record.bytes.size;
    }
    return true;
}
