#include "strings.h"

#include <string.h>

bool strings_lie_within(const struct strings *strings)
{
    uint64_t size = strings->buffer.size;
    for (size_t i = 0; i < strings->count; i++) {
        /* Negative numbers are large ones. */
        uint64_t start = (uint64_t)strings->starts[i], length = (uint64_t)strings->sizes[i];
        if (start > size || length > size - start)
            return false;
    }
    return true;
}

bool strings_copy(const struct strings *strings, uint8_t *target, size_t room)
{
    uint64_t total = 0;
    for (size_t i = 0; i < strings->count; i++) {
        total += (uint64_t)strings->sizes[i];
        if (total > room)
            return false;
    }
    for (size_t i = 0; i < strings->count; i++) {
        struct span string = string_at(strings, i);
        if (string.size)
            memcpy(target, string.at, string.size);
        target += string.size;
    }
    return true;
}
