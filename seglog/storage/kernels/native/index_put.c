/* A reader beside the writer sees whole chains: an entry is written before the slot that leads to it, and
 * the header last.
 */

#include "index_put.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "../layout.h"
#include "bytes.h"
#include "index_seconds.h"
#include "rows.h"

static void put_u32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 24);
    at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8);
    at[3] = (uint8_t)value;
}

static void put_i64(uint8_t *at, int64_t value)
{
    put_u32(at, (uint32_t)((uint64_t)value >> 32));
    put_u32(at + 4, (uint32_t)(uint64_t)value);
}

static uint8_t *slot_of(const struct index_file *file, int32_t hash)
{
    int64_t slot = hash % (int64_t)file->slot_count;
    if (slot < 0)
        slot += file->slot_count;
    return file->bytes + SEGLOG_INDEX_HEADER_SIZE + (size_t)slot * SEGLOG_INDEX_SLOT_SIZE;
}

static uint8_t *entry_at(const struct index_file *file, uint32_t number)
{
    return file->bytes + SEGLOG_INDEX_HEADER_SIZE + (size_t)file->slot_count * SEGLOG_INDEX_SLOT_SIZE +
           (size_t)number * SEGLOG_INDEX_ENTRY_SIZE;
}

/* Writes one entry and the slot that leads to it; returns whether the slot was free. */
static int put_one(const struct index_file *file, const uint8_t *row, uint32_t number, int64_t begin_ms)
{
    int32_t hash = row_i32(row + SEGLOG_KEY_ROW_KEY_HASH_AT);
    uint8_t *slot = slot_of(file, hash), *entry = entry_at(file, number);
    uint32_t head = read_u32(slot + SEGLOG_INDEX_SLOT_NEWEST_ENTRY_AT);
    uint32_t previous = head <= number ? head : 0; /* what names no older entry counts as none */
    int64_t time_ms = row_i64(row + SEGLOG_KEY_ROW_STORE_TIMESTAMP_MS_AT);
    put_u32(entry + SEGLOG_INDEX_ENTRY_KEY_HASH_AT, (uint32_t)hash);
    put_i64(entry + SEGLOG_INDEX_ENTRY_PHY_OFFSET_AT, row_i64(row + SEGLOG_KEY_ROW_PHY_OFFSET_AT));
    put_u32(entry + SEGLOG_INDEX_ENTRY_TIME_DIFF_S_AT, index_seconds_since(begin_ms, time_ms));
    put_u32(entry + SEGLOG_INDEX_ENTRY_PREVIOUS_ENTRY_AT, previous);
    atomic_thread_fence(memory_order_release);
    put_u32(slot + SEGLOG_INDEX_SLOT_NEWEST_ENTRY_AT, number);
    return previous == 0;
}

static void put_header(uint8_t *header, const uint8_t *first, const uint8_t *last, uint32_t opened, uint32_t end)
{
    atomic_thread_fence(memory_order_release);
    if (first) {
        put_i64(header + SEGLOG_INDEX_HEADER_BEGIN_TIMESTAMP_MS_AT,
                row_i64(first + SEGLOG_KEY_ROW_STORE_TIMESTAMP_MS_AT));
        put_i64(header + SEGLOG_INDEX_HEADER_BEGIN_PHY_OFFSET_AT,
                row_i64(first + SEGLOG_KEY_ROW_PHY_OFFSET_AT));
    }
    put_i64(header + SEGLOG_INDEX_HEADER_END_TIMESTAMP_MS_AT,
            row_i64(last + SEGLOG_KEY_ROW_STORE_TIMESTAMP_MS_AT));
    put_i64(header + SEGLOG_INDEX_HEADER_END_PHY_OFFSET_AT, row_i64(last + SEGLOG_KEY_ROW_PHY_OFFSET_AT));
    put_u32(header + SEGLOG_INDEX_HEADER_HASH_SLOT_COUNT_AT,
            read_u32(header + SEGLOG_INDEX_HEADER_HASH_SLOT_COUNT_AT) + opened);
    put_u32(header + SEGLOG_INDEX_HEADER_INDEX_COUNT_AT, end);
}

uint32_t index_put(const struct index_file *file, const uint8_t *rows, uint32_t count)
{
    uint8_t *header = file->bytes;
    int32_t index_count = read_i32(header + SEGLOG_INDEX_HEADER_INDEX_COUNT_AT);
    uint32_t next = index_count > 0 ? (uint32_t)index_count : 1;
    int64_t begin_ms = read_i64(header + SEGLOG_INDEX_HEADER_BEGIN_TIMESTAMP_MS_AT);
    bool is_new = next == 1;
    uint32_t opened = 0;
    if (next >= file->entry_count || count == 0)
        return 0;
    if (count > file->entry_count - next)
        count = file->entry_count - next;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *row = rows + (size_t)i * SEGLOG_KEY_ROW_SIZE;
        opened += (uint32_t)put_one(file, row, next + i, begin_ms);
        if (is_new && i == 0) /* the first one still counts from the end of the file before */
            begin_ms = row_i64(row + SEGLOG_KEY_ROW_STORE_TIMESTAMP_MS_AT);
    }
    put_header(header, is_new ? rows : NULL, rows + (size_t)(count - 1) * SEGLOG_KEY_ROW_SIZE, opened,
               next + count);
    return count;
}
