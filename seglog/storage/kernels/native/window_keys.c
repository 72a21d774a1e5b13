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

static bool add_keys(struct key_rows *keys, const struct record *record, int64_t phy_offset, bool tags)
{
    size_t before = keys->count;
    keys_of_record(keys, record, phy_offset, tags);
    while (keys->count > keys->room) {
        keys->count = before;
        uint8_t *rows = with_more_room(keys->rows, &keys->room, SEGLOG_KEY_ROW_SIZE);
        if (!rows)
            return false;
        keys->rows = rows;
        settle_memory();
        keys_of_record(keys, record, phy_offset, tags);
    }
    return true;
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
        window->with_crc += has_record_crc(&record);
        if (!(is_tombstone(&record) ? add_lost(window, position)
                                    : add_keys(&window->keys, &record, place, tags)))
            return false;
        position += record.bytes.size;
    }
    return true;
}

void window_keys_free(struct window_keys *window)
{
    free(window->keys.rows);
    free(window->lost);
}
