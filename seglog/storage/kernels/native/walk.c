/* The walk. Memory comes from malloc, because it runs without the GIL. */

#include "walk.h"

#include <string.h>

#include "../layout.h"
#include "guard.h"
#include "properties.h"
#include "record.h"
#include "room.h"
#include "rows.h"
#include "tags.h"

static bool make_room(struct walk *walk)
{
    if (walk->count == walk->room) {
        uint8_t *rows = with_more_room(walk->rows, &walk->room, SEGLOG_ROW_SIZE);
        if (!rows)
            return false;
        walk->rows = rows;
    }
    if (walk->more_count == walk->more_room) {
        size_t *saying_more = with_more_room(walk->saying_more, &walk->more_room, sizeof *saying_more);
        if (!saying_more)
            return false;
        walk->saying_more = saying_more;
    }
    return true;
}

static void write_row(uint8_t *row, const struct record *record, int64_t phy_offset, int32_t queue,
                      int64_t tags_code)
{
    set_row_i64(row + SEGLOG_ROW_PHY_OFFSET_AT, phy_offset);
    set_row_i64(row + SEGLOG_ROW_QUEUE_OFFSET_AT, record->queue_offset);
    set_row_i64(row + SEGLOG_ROW_TAGS_CODE_AT, tags_code);
    set_row_i64(row + SEGLOG_ROW_STORE_TIMESTAMP_MS_AT, record->store_timestamp_ms);
    set_row_i32(row + SEGLOG_ROW_SIZE_BYTES_AT, (int32_t)record->bytes.size);
    set_row_i32(row + SEGLOG_ROW_QUEUE_AT, queue);
    set_row_i32(row + SEGLOG_ROW_SYS_FLAG_AT, record->sys_flag);
}

/* Notes the keys of a record; its tag is found on the way. */
static enum noted note_keys(struct walk *walk, const struct record *record, int64_t phy_offset, int32_t queue,
                            int64_t *tags_code)
{
    struct index_values values = index_values_of(record->properties);
    *tags_code =
        tags_code_by_value(record->topic, record->properties, values.tags, record->store_timestamp_ms);
    return window_keys_note(walk->keys, record, &values, walk->queues.list[queue].key_hash_before,
                            walk->position, phy_offset, walk->tags);
}

static enum noted add(struct walk *walk, const struct record *record, int64_t phy_offset)
{
    static const char inner[] = SEGLOG_INNER_NAMES;
    enum noted noted = NOTED;
    int64_t tags_code;
    int32_t queue = queues_number(&walk->queues, record->topic, record->queue_id);
    if (queue < 0 || !make_room(walk))
        return NO_MEMORY;
    if (walk->keys)
        noted = note_keys(walk, record, phy_offset, queue, &tags_code);
    else
        tags_code = unit_tags_code(record->topic, record->properties, record->store_timestamp_ms);
    if (noted != NOTED)
        return noted;
    write_row(walk->rows + walk->count++ * SEGLOG_ROW_SIZE, record, phy_offset, queue, tags_code);
    if (properties_hold(record->properties, span_of((const uint8_t *)inner, sizeof inner - 1)))
        walk->saying_more[walk->more_count++] = walk->position;
    return NOTED;
}

static struct span from(struct span log, size_t position)
{
    return span_of(log.at + position, log.size - position);
}

/* Reads the record at a place of the log; none can lie where its offset would not fit its field. */
static bool read_at(struct span log, size_t position, int64_t phy_offset, struct record *found)
{
    settle_memory();
    if (log.size - position < SEGLOG_MIN_RECORD_BYTES || position > (uint64_t)(INT64_MAX - phy_offset))
        return false;
    return record_read(from(log, position), phy_offset + (int64_t)position, found);
}

static bool has_no_row(const struct walk *walk)
{
    return walk->are_borrowed && walk->count == walk->room;
}

bool walk_on(struct walk *walk, struct span log, int64_t phy_offset, size_t until, bool verify)
{
    struct record record;
    while (walk->position < until) {
        walk->is_full = has_no_row(walk);
        if (walk->is_full || !read_at(log, walk->position, phy_offset, &record) ||
            (verify && !record_verifies(&record)))
            break;
        enum noted noted = add(walk, &record, phy_offset + (int64_t)walk->position);
        walk->is_full = noted == NO_ROOM;
        if (noted != NOTED)
            return walk->is_full;
        walk->position += record.bytes.size;
    }
    return true;
}

void walk_renumber(struct walk *walk, const int32_t *numbers)
{
    for (size_t i = 0; i < walk->count; i++) {
        uint8_t *at = walk->rows + i * SEGLOG_ROW_SIZE + SEGLOG_ROW_QUEUE_AT;
        set_row_i32(at, numbers[row_i32(at)]);
    }
}

void walk_free(struct walk *walk)
{
    if (!walk->are_borrowed)
        free(walk->rows);
    free(walk->saying_more);
    queues_free(&walk->queues);
}

/* Both magics begin with the same byte, which text never has. */
static const uint8_t *next_magic_byte(struct span bytes)
{
    return bytes.size ? memchr(bytes.at, SEGLOG_MAGIC_V1 >> 24, bytes.size) : NULL;
}

size_t find_record(struct span log, int64_t phy_offset, size_t start, size_t until)
{
    struct record record;
    size_t end = log.size < SEGLOG_MIN_RECORD_BYTES ? 0 : log.size - SEGLOG_MIN_RECORD_BYTES + 1;
    if (until < end)
        end = until;
    while (start < end) {
        const uint8_t *magic = next_magic_byte(span_of(log.at + start + SEGLOG_MAGIC_AT, end - start));
        if (!magic)
            break;
        start = (size_t)(magic - log.at) - SEGLOG_MAGIC_AT;
        if (read_at(log, start, phy_offset, &record) && record_verifies(&record))
            return start;
        start++;
    }
    return log.size;
}
