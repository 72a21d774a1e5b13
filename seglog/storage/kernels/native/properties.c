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

static size_t leading_digits(struct span bytes, size_t most)
{
    size_t count = 0;
    while (count < most && count < bytes.size && bytes.at[count] >= '0' && bytes.at[count] <= '9')
        count++;
    return count;
}

/* Whether what stands behind the name of the own check is cut short, or has the head of a record behind it. */
static bool is_misplaced_check(struct span rest)
{
    size_t digits = leading_digits(rest, SEGLOG_CRC_DIGITS);
    if (digits == rest.size)
        return true;
    return digits == SEGLOG_CRC_DIGITS && rest.size > digits + 1 && rest.at[digits] == SEGLOG_ENTRY_END &&
           rest.at[digits + 1] == 0;
}

static bool hold_misplaced_check(struct span properties)
{
    static const char text[] = SEGLOG_CRC_NAME;
    struct span name = span_of((const uint8_t *)text, sizeof text - 1);
    while (properties.size >= name.size) {
        properties = behind(properties, size_up_to(properties, name.at[0]));
        if (begins_with(properties, name) && is_misplaced_check(behind(properties, name.size)))
            return true;
        if (properties.size)
            properties = behind(properties, 1);
    }
    return false;
}

/* look_torn() in properties.py says why. */
bool properties_look_torn(struct span properties)
{
    static const uint8_t zeros[SEGLOG_TORN_NULS];
    static const size_t cut_size = SEGLOG_CRC_PROPERTY_BYTES - 1; /* the name and what the end left of the rest */
    if (properties.size == 0)
        return false;
    uint8_t last = properties.at[properties.size - 1];
    if (size_up_to(properties, 0) == properties.size)
        return last != SEGLOG_ENTRY_END && hold_misplaced_check(span_last(properties, cut_size));
    return last == 0 || properties_hold(properties, span_of(zeros, sizeof zeros)) ||
           hold_misplaced_check(properties);
}
