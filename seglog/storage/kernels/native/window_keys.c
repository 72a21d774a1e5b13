#include "window_keys.h"

#include <string.h>

#include "../layout.h"
#include "guard.h"
#include "record.h"
#include "room.h"

static bool has_record_crc(const struct record *record)
{
    static const char name[] = SEGLOG_CRC_NAME;
    struct span properties = record->properties;
    return properties.size >= SEGLOG_CRC_PROPERTY_BYTES &&
           memcmp(properties.at + properties.size - SEGLOG_CRC_PROPERTY_BYTES, name, sizeof name - 1) == 0;
}

static bool is_tombstone(const struct record *record)
{
    return read_i32(record->bytes.at + SEGLOG_HEADS_0_FLAG_AT) == SEGLOG_LOST_FLAG;
}

static bool add_lost(struct window_keys *window, size_t position)
{
    if (window->lost_count == window->lost_room) {
        size_t *lost = with_more_room(window->lost, &window->lost_room, sizeof *window->lost);
        if (!lost)
            return false;
        window->lost = lost;
        settle_memory();
    }
    window->lost[window->lost_count++] = position;
    return true;
}

static enum noted add_keys(struct window_keys *window, const struct record *record,
                           const struct index_values *values, uint32_t hash_before, int64_t phy_offset,
                           bool tags)
{
    struct key_rows *keys = &window->keys;
    size_t before = keys->count;
    keys_of_values(keys, record, values, hash_before, phy_offset, tags);
    while (keys->count > keys->room) {
        keys->count = before;
        if (window->are_borrowed)
            return NO_ROOM;
        uint8_t *rows = with_more_room(keys->rows, &keys->room, SEGLOG_KEY_ROW_SIZE);
        if (!rows)
            return NO_MEMORY;
        keys->rows = rows;
        settle_memory();
        keys_of_values(keys, record, values, hash_before, phy_offset, tags);
    }
    return NOTED;
}

enum noted window_keys_note(struct window_keys *window, const struct record *record,
                            const struct index_values *values, uint32_t hash_before, size_t position,
                            int64_t phy_offset, bool tags)
{
    enum noted noted = NOTED;
    if (!is_tombstone(record))
        noted = add_keys(window, record, values, hash_before, phy_offset, tags);
    else if (!add_lost(window, position))
        noted = NO_MEMORY;
    if (noted == NOTED)
        window->with_crc += has_record_crc(record);
    return noted;
}

bool window_keys_of(struct window_keys *window, struct span log, int64_t phy_offset, bool tags)
{
    struct record record;
    size_t position = 0;
    while (log.size - position >= SEGLOG_MIN_RECORD_BYTES && position <= (uint64_t)(INT64_MAX - phy_offset)) {
        int64_t place = phy_offset + (int64_t)position;
        settle_memory();
        if (!record_read(span_of(log.at + position, log.size - position), place, &record))
            break;
        struct index_values values = index_values_of(record.properties);
        uint32_t before = key_hash_before(record.topic);
        if (window_keys_note(window, &record, &values, before, position, place, tags) != NOTED)
            return false;
        position += record.bytes.size;
    }
    return true;
}

void window_keys_free(struct window_keys *window)
{
    if (!window->are_borrowed)
        free(window->keys.rows);
    free(window->lost);
}
