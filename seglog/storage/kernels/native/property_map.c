#include "property_map.h"

#include <string.h>

#include "../layout.h"
#include "properties.h"

enum { MOST_ENTRIES = 64 };

struct entry {
    struct span name, value;
};

struct entries {
    struct entry list[MOST_ENTRIES];
    size_t count;
};

static struct span piece_of(struct span bytes, uint8_t end)
{
    const uint8_t *found = bytes.size ? memchr(bytes.at, end, bytes.size) : NULL;
    return span_of(bytes.at, found ? (size_t)(found - bytes.at) : bytes.size);
}

static bool are_equal(struct span one, struct span other)
{
    return one.size == other.size && memcmp(one.at, other.at, one.size) == 0;
}

/* Takes the earlier entry of a name out. */
static void forget(struct entries *entries, struct span name)
{
    for (size_t i = 0; i < entries->count; i++) {
        if (are_equal(entries->list[i].name, name)) {
            entries->count--;
            memmove(&entries->list[i], &entries->list[i + 1],
                    (entries->count - i) * sizeof entries->list[0]);
            return;
        }
    }
}

static bool take_apart(struct entries *entries, struct span properties)
{
    entries->count = 0;
    while (properties.size) {
        struct span piece = piece_of(properties, SEGLOG_ENTRY_END);
        struct span name = piece_of(piece, SEGLOG_NAME_END);
        if (name.size && name.size + 1 < piece.size) {
            forget(entries, name);
            if (entries->count == MOST_ENTRIES)
                return false;
            struct entry *entry = &entries->list[entries->count++];
            entry->name = name;
            entry->value = span_of(name.at + name.size + 1, piece.size - name.size - 1);
        }
        size_t skipped = piece.size < properties.size ? piece.size + 1 : piece.size;
        properties = span_of(properties.at + skipped, properties.size - skipped);
    }
    return true;
}

bool property_map_fill(struct property_map *map, const struct strings *properties)
{
    struct entries entries;
    size_t names = 0, values = 0;
    for (size_t row = 0; row < properties->count; row++) {
        if (!take_apart(&entries, string_at(properties, row)) || entries.count > map->entry_room - map->count)
            return false;
        for (size_t i = 0; i < entries.count; i++) {
            struct span name = entries.list[i].name, value = entries.list[i].value;
            if (name.size > map->name_room - names || value.size > map->value_room - values)
                return false;
            memcpy(map->names + names, name.at, name.size);
            memcpy(map->values + values, value.at, value.size);
            names += name.size;
            values += value.size;
            map->name_ends[map->count] = (int32_t)names;
            map->value_ends[map->count] = (int32_t)values;
            map->count++;
        }
        map->row_ends[row] = (int32_t)map->count;
    }
    return true;
}

void property_values(const struct strings *properties, struct span name, int64_t *starts, int64_t *sizes)
{
    for (size_t row = 0; row < properties->count; row++) {
        struct span value = property_value(string_at(properties, row), name);
        starts[row] = value.size ? (int64_t)(value.at - properties->buffer.at) : 0;
        sizes[row] = (int64_t)value.size;
    }
}
