/* Message properties, as seglog/storage/format/properties.py reads them: entries `name 0x01 value 0x02`. */
#ifndef SEGLOG_PROPERTIES_H
#define SEGLOG_PROPERTIES_H

#include <stdbool.h>

#include "bytes.h"

/* The value of a property, empty if it has none; of several the last that has one counts.
 * `name` ends with the 0x01 that ends it.
 */
struct span property_value(struct span properties, struct span name);

/* The values under which the key index has a record, as property_value() finds each. */
struct index_values {
    struct span unique_key, keys, tags;
};

/* Finds them in one pass. */
struct index_values index_values_of(struct span properties);

bool properties_hold(struct span properties, struct span text);

/* Whether they hold the zeros of a write that did not reach the disk, or an own check out of its place. */
bool properties_look_torn(struct span properties);

#endif
