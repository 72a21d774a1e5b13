#include "groups.h"

#include <string.h>

#include "../layout.h"
#include "rows.h"

static bool has_place(const uint8_t *row)
{
    int32_t transaction = row_i32(row + SEGLOG_ROW_SYS_FLAG_AT) & SEGLOG_TRANSACTION_MASK;
    return transaction != SEGLOG_TRANSACTION_PREPARED && transaction != SEGLOG_TRANSACTION_ROLLBACK;
}

static void add(struct group *group, const uint8_t *row)
{
    int64_t time_ms = row_i64(row + SEGLOG_ROW_STORE_TIMESTAMP_MS_AT);
    if (!group->count || time_ms < group->least_ms)
        group->least_ms = time_ms;
    if (!group->count || time_ms > group->greatest_ms)
        group->greatest_ms = time_ms;
    group->size_bytes += row_i32(row + SEGLOG_ROW_SIZE_BYTES_AT);
    group->count++;
}

bool rows_group(const uint8_t *rows, size_t count, struct group *groups, size_t group_count, uint8_t *sorted)
{
    const uint8_t *behind = rows + count * SEGLOG_ROW_SIZE;
    for (const uint8_t *row = rows; row != behind; row += SEGLOG_ROW_SIZE) {
        int32_t queue = row_i32(row + SEGLOG_ROW_QUEUE_AT);
        if (queue < 0 || (size_t)queue >= group_count || row_i32(row + SEGLOG_ROW_SYS_FLAG_AT) & SEGLOG_INNER_BATCH)
            return false;
        if (has_place(row))
            add(&groups[queue], row);
    }
    size_t end = 0;
    for (size_t i = 0; i < group_count; i++) {
        size_t size = groups[i].count;
        groups[i].end = end;
        end += size;
    }
    for (const uint8_t *row = rows; row != behind; row += SEGLOG_ROW_SIZE)
        if (has_place(row))
            memcpy(sorted + groups[row_i32(row + SEGLOG_ROW_QUEUE_AT)].end++ * SEGLOG_ROW_SIZE, row,
                   SEGLOG_ROW_SIZE);
    return true;
}
