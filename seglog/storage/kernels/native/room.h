/* Arrays that grow, in memory of malloc: they grow without the GIL. */
#ifndef SEGLOG_ROOM_H
#define SEGLOG_ROOM_H

#include <stdint.h>
#include <stdlib.h>

enum { FIRST_ROOM = 256 };

/* The array with twice the room, NULL without memory: then it is as it was. */
static inline void *with_more_room(void *items, size_t *room, size_t item_size)
{
    size_t wanted = *room ? 2 * *room : FIRST_ROOM;
    if (wanted > SIZE_MAX / item_size)
        return NULL;
    void *grown = realloc(items, wanted * item_size);
    if (grown)
        *room = wanted;
    return grown;
}

#endif
