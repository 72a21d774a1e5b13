/* The time of an entry of the key index: whole seconds after the begin of its file. */
#ifndef SEGLOG_INDEX_SECONDS_H
#define SEGLOG_INDEX_SECONDS_H

#include <stdint.h>

#include "../layout.h"

/* 0 where the file has no begin yet. Wraps as arrays of integers do. */
static inline uint32_t index_seconds_since(int64_t begin_ms, int64_t time_ms)
{
    if (begin_ms <= 0)
        return 0;
    int64_t seconds = (int64_t)((uint64_t)time_ms - (uint64_t)begin_ms) / 1000;
    return seconds < 0 ? 0 : seconds > SEGLOG_MAX_INT ? SEGLOG_MAX_INT : (uint32_t)seconds;
}

#endif
