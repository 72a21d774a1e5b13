#include "properties.h"

#include <string.h>

#include "../layout.h"

/* Bytes from the start to the next `byte`, all of them if there is none. */
static size_t size_up_to(struct span bytes, uint8_t byte)
{
    const uint8_t *found = bytes.size ? memchr(bytes.at, byte, bytes.size) : NULL;
    return found ? (size_t)(found - bytes.at) : bytes.size;
}

static struct span behind(struct span bytes, size_t size)
{
    return span_of(bytes.at + size, bytes.size - size);
}

static bool begins_with(struct span bytes, struct span text)
{
    return bytes.size >= text.size && memcmp(bytes.at, text.at, text.size) == 0;
}

struct span property_value(struct span properties, struct span name)
{
    struct span value = {NULL, 0};
    while (properties.size >= name.size) {
        size_t entry_size = size_up_to(properties, SEGLOG_ENTRY_END);
        struct span entry = span_of(properties.at, entry_size);
        if (entry.size > name.size && begins_with(entry, name))
            value = behind(entry, name.size);
        if (entry_size == properties.size)
            break;
        properties = behind(properties, entry_size + 1);
    }
    return value;
}

#define NAMED(literal) span_of((const uint8_t *)(literal "\001"), sizeof(literal))

static void take_value(struct span entry, struct span name, struct span *value)
{
    if (entry.size > name.size && begins_with(entry, name))
        *value = behind(entry, name.size);
}

struct index_values index_values_of(struct span properties)
{
    struct index_values found = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    while (properties.size) {
        size_t entry_size = size_up_to(properties, SEGLOG_ENTRY_END);
        struct span entry = span_of(properties.at, entry_size);
        switch (properties.at[0]) { /* the three differ in their first byte */
        case 'U':
            take_value(entry, NAMED(SEGLOG_UNIQ_KEY_NAME), &found.unique_key);
            break;
        case 'K':
            take_value(entry, NAMED(SEGLOG_KEYS_NAME), &found.keys);
            break;
        case 'T':
            take_value(entry, NAMED(SEGLOG_TAGS_NAME), &found.tags);
            break;
        default:
            break;
        }
        if (entry_size == properties.size)
            break;
        properties = behind(properties, entry_size + 1);
    }
    return found;
}

bool properties_hold(struct span properties, struct span text)
{
    while (properties.size >= text.size) {
        size_t skipped = size_up_to(span_of(properties.at, properties.size - text.size + 1), text.at[0]);
        if (skipped > properties.size - text.size)
            return false;
        properties = behind(properties, skipped);
        if (begins_with(properties, text))
            return true;
        properties = behind(properties, 1);
    }
    return false;
}

bool properties_look_torn(struct span properties)
{
    static const uint8_t zeros[SEGLOG_TORN_NULS];
    if (properties.size == 0)
        return false;
    return properties.at[properties.size - 1] == 0 || properties_hold(properties, span_of(zeros, sizeof zeros));
}
