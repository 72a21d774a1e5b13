#include "index_entries.h"

#include "../layout.h"
#include "index_seconds.h"
#include "rows.h"

enum { AHEAD = 24 /* entries whose slots are fetched before they are needed */ };

static const uint8_t *entry_at(const uint8_t *entries, size_t i)
{
    return entries + i * SEGLOG_INDEX_ENTRY_SIZE;
}

struct entries_extent entries_extent_of(const uint8_t *entries, size_t count)
{
    int64_t before = read_i64(entries + SEGLOG_INDEX_ENTRY_PHY_OFFSET_AT);
    struct entries_extent extent = {before, before, true};
    for (size_t i = 1; i < count; i++) {
        int64_t place = read_i64(entry_at(entries, i) + SEGLOG_INDEX_ENTRY_PHY_OFFSET_AT);
        extent.is_sorted &= place >= before;
        extent.least = place < extent.least ? place : extent.least;
        extent.greatest = place > extent.greatest ? place : extent.greatest;
        before = place;
    }
    return extent;
}

static uint32_t slot_of(const uint8_t *entry, uint32_t slot_count)
{
    int32_t hash = read_i32(entry + SEGLOG_INDEX_ENTRY_KEY_HASH_AT);
    if (hash >= 0)
        return (uint32_t)hash % slot_count;
    int64_t slot = hash % (int64_t)slot_count;
    return (uint32_t)(slot < 0 ? slot + slot_count : slot);
}

size_t entries_follow(const uint8_t *entries, size_t count, uint32_t first, struct newest_entries newest,
                      struct wrong_entry *wrong, size_t most)
{
    size_t found = 0;
    uint32_t slots[AHEAD];
    size_t fetched = 0;
    for (size_t i = 0; i < count; i++) {
        for (; fetched < count && fetched < i + AHEAD; fetched++) {
            slots[fetched % AHEAD] = slot_of(entry_at(entries, fetched), newest.slot_count);
            __builtin_prefetch(&newest.slots[slots[fetched % AHEAD]], 1);
        }
        int32_t *slot = &newest.slots[slots[i % AHEAD]];
        int32_t previous = *slot;
        *slot = (int32_t)(first + i);
        if (read_i32(entry_at(entries, i) + SEGLOG_INDEX_ENTRY_PREVIOUS_ENTRY_AT) != previous) {
            if (found < most) {
                struct wrong_entry one = {(uint32_t)(first + i), (uint32_t)previous};
                wrong[found] = one;
            }
            found++;
        }
    }
    return found;
}

static bool stands_for(const uint8_t *row, const uint8_t *entry)
{
    return read_i32(entry + SEGLOG_INDEX_ENTRY_KEY_HASH_AT) == row_i32(row + SEGLOG_KEY_ROW_KEY_HASH_AT) &&
           read_i64(entry + SEGLOG_INDEX_ENTRY_PHY_OFFSET_AT) == row_i64(row + SEGLOG_KEY_ROW_PHY_OFFSET_AT);
}

bool entries_stand_for(const uint8_t *rows, const uint8_t *entries, size_t count, int64_t begin_ms,
                       bool starts_file)
{
    /* The keys of a record, and those of its neighbours, mostly have one time. */
    int64_t last_ms = 0;
    uint32_t seconds = index_seconds_since(begin_ms, last_ms);
    for (size_t i = 0; i < count; i++) {
        const uint8_t *row = rows + i * SEGLOG_KEY_ROW_SIZE, *entry = entry_at(entries, i);
        if (!stands_for(row, entry))
            return false;
        if (begin_ms < 0 || (starts_file && i == 0))
            continue;
        int64_t time_ms = row_i64(row + SEGLOG_KEY_ROW_STORE_TIMESTAMP_MS_AT);
        if (time_ms != last_ms) {
            seconds = index_seconds_since(begin_ms, time_ms);
            last_ms = time_ms;
        }
        if (read_u32(entry + SEGLOG_INDEX_ENTRY_TIME_DIFF_S_AT) != seconds)
            return false;
    }
    return true;
}
