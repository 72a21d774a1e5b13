#include "units.h"

#include "../layout.h"
#include "rows.h"

static bool is_unit_of(const uint8_t *row, const uint8_t *unit)
{
    return read_i64(unit + SEGLOG_CQ_UNIT_PHY_OFFSET_AT) == row_i64(row + SEGLOG_ROW_PHY_OFFSET_AT) &&
           read_i32(unit + SEGLOG_CQ_UNIT_SIZE_BYTES_AT) == row_i32(row + SEGLOG_ROW_SIZE_BYTES_AT) &&
           read_i64(unit + SEGLOG_CQ_UNIT_TAGS_CODE_AT) == row_i64(row + SEGLOG_ROW_TAGS_CODE_AT);
}

/* A unit of size 0 is a free slot, one of the pre-blank size stands for no message. */
static bool has_size_of_record(const uint8_t *row)
{
    int32_t size = row_i32(row + SEGLOG_ROW_SIZE_BYTES_AT);
    return size >= SEGLOG_MIN_RECORD_BYTES && size != SEGLOG_PRE_BLANK_BYTES;
}

/* Differences wrap, so that none overflows; what wraps is none of these. */
static bool follows(const uint8_t *row, const uint8_t *before)
{
    uint64_t step = (uint64_t)row_i64(row + SEGLOG_ROW_QUEUE_OFFSET_AT) -
                    (uint64_t)row_i64(before + SEGLOG_ROW_QUEUE_OFFSET_AT);
    int64_t place = row_i64(row + SEGLOG_ROW_PHY_OFFSET_AT);
    int64_t place_before = row_i64(before + SEGLOG_ROW_PHY_OFFSET_AT);
    return step == 1 && place > place_before &&
           (uint64_t)place - (uint64_t)place_before >= SEGLOG_MIN_RECORD_BYTES;
}

bool rows_stand_in(const uint8_t *rows, size_t count, const uint8_t *units)
{
    for (size_t i = 0; i < count; i++) {
        const uint8_t *row = rows + i * SEGLOG_ROW_SIZE;
        if (!has_size_of_record(row) || (i && !follows(row, row - SEGLOG_ROW_SIZE)) ||
            !is_unit_of(row, units + i * SEGLOG_CQ_UNIT_SIZE))
            return false;
    }
    return true;
}
