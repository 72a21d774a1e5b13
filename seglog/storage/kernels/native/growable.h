/* Arrays that grow, in memory of malloc, because they grow without the GIL. */
#ifndef SEGLOG_GROWABLE_H
#define SEGLOG_GROWABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 256 };

/* Doubles the room of an array; `array` points to the pointer to its start. Returns false without memory; the
 * array is unchanged then. */
static inline bool growable_grow(void *array, size_t *room, size_t item_size)
{
    void *items;
    size_t wanted = *room ? 2 * *room : FIRST_ROOM;
    memcpy(&items, array, sizeof items);
    items = wanted > SIZE_MAX / item_size ? NULL : realloc(items, wanted * item_size);
    if (!items)
        return false;
    memcpy(array, &items, sizeof items);
    *room = wanted;
    return true;
}

/* Makes room for one more item after `count` of them. */
static inline bool growable_reserve(void *array, size_t count, size_t *room, size_t item_size)
{
    return count < *room || growable_grow(array, room, item_size);
}

#endif
