#include "tags.h"

#include <stdbool.h>
#include <string.h>

#include "../layout.h"
#include "java_hash.h"
#include "properties.h"

enum { MS_PER_S = 1000 };

static const int32_t delay_levels_s[] = SEGLOG_DELAY_LEVELS_S;
enum { HIGHEST_LEVEL = sizeof delay_levels_s / sizeof delay_levels_s[0] };

static bool is_schedule_topic(struct span topic)
{
    static const char name[] = SEGLOG_SCHEDULE_TOPIC;
    return topic.size == sizeof name - 1 && memcmp(topic.at, name, topic.size) == 0;
}

/* The level that a DELAY property asks for, capped at the highest; 0 if it asks for none. */
static int delay_level(struct span value)
{
    int level = 0;
    for (size_t at = 0; at < value.size; at++) {
        if (value.at[at] < '0' || value.at[at] > '9')
            return 0;
        level = level * 10 + (value.at[at] - '0');
        if (level > HIGHEST_LEVEL)
            level = HIGHEST_LEVEL; /* and stays there: what follows is only looked at for being digits */
    }
    return level;
}

static struct span value_of(struct span properties, const char *name_and_end, size_t size)
{
    return property_value(properties, span_of((const uint8_t *)name_and_end, size));
}

int64_t tags_code_by_value(struct span topic, struct span properties, struct span tag, int64_t store_timestamp_ms)
{
    static const char delay[] = SEGLOG_DELAY "\001";
    if (is_schedule_topic(topic)) {
        int level = delay_level(value_of(properties, delay, sizeof delay - 1));
        if (level > 0) /* wraps as Java's sum of longs does */
            return (int64_t)((uint64_t)store_timestamp_ms + (uint64_t)delay_levels_s[level - 1] * MS_PER_S);
    }
    return java_hash(tag);
}

int64_t unit_tags_code(struct span topic, struct span properties, int64_t store_timestamp_ms)
{
    static const char tags[] = SEGLOG_TAGS "\001";
    struct span tag = value_of(properties, tags, sizeof tags - 1);
    return tags_code_by_value(topic, properties, tag, store_timestamp_ms);
}
