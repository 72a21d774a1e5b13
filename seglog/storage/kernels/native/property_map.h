/* Properties of many records as a map of Arrow: names and values one behind the other, and where each ends. */
#ifndef SEGLOG_PROPERTY_MAP_H
#define SEGLOG_PROPERTY_MAP_H

#include "strings.h"

/* Room for the map, and what is in it. Ends count from 0: entry i of a list ends at ends[i]. */
struct property_map {
    int32_t *row_ends;                /* entries up to the end of each record */
    int32_t *name_ends, *value_ends;  /* of each entry */
    uint8_t *names, *values;
    size_t entry_room, name_room, value_room;
    size_t count;
};

/* Takes the properties of all records apart; of several entries of a name the last stays, in its place.
 * False where there is no room, or where a record has more entries than are compared with each other.
 */
bool property_map_fill(struct property_map *map, const struct strings *properties);

/* Where the value of a property lies in the buffer, and its size, of each record; size 0 without one. */
void property_values(const struct strings *properties, struct span name, int64_t *starts, int64_t *sizes);

#endif
