/* Fields of rows, which are in the byte order of the machine and at any place. */
#ifndef SEGLOG_ROWS_H
#define SEGLOG_ROWS_H

#include <stdint.h>
#include <string.h>

static inline int64_t row_i64(const uint8_t *at)
{
    int64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline int32_t row_i32(const uint8_t *at)
{
    int32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline void set_row_i64(uint8_t *at, int64_t value)
{
    memcpy(at, &value, sizeof value);
}

static inline void set_row_i32(uint8_t *at, int32_t value)
{
    memcpy(at, &value, sizeof value);
}

#endif
