/* Byte strings of many records, copied behind each other or taken apart, for columns. */
#ifndef SEGLOG_STRINGS_H
#define SEGLOG_STRINGS_H

#include <stdbool.h>

#include "bytes.h"

/* Strings of a buffer: where each starts, and how long it is. */
struct strings {
    struct span buffer;
    const int64_t *starts, *sizes;
    size_t count;
};

/* Whether all of them lie within their buffer. */
bool strings_lie_within(const struct strings *strings);

/* One of them, which does. */
static inline struct span string_at(const struct strings *strings, size_t i)
{
    return span_of(strings->buffer.at + strings->starts[i], (size_t)strings->sizes[i]);
}

/* Copies them one behind the other; false, without any, if there is no room for all of them. */
bool strings_copy(const struct strings *strings, uint8_t *target, size_t room);

#endif
