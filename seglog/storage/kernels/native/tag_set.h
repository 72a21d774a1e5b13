/* The tags that a reader wants, as TagFilter has them: codes for queue units, names for records. */
#ifndef SEGLOG_TAG_SET_H
#define SEGLOG_TAG_SET_H

#include "python_api.h"

#include <stdbool.h>

#include "bytes.h"

typedef struct TagSet TagSet;

/* Whether a unit with this code may lead to a wanted record. */
bool tag_set_has_code(const TagSet *tags, int64_t tags_code);

/* Whether the codes say all; otherwise the tag itself has to be looked at. */
bool tag_set_is_loose(const TagSet *tags);

/* Whether one of the tags is that of these properties. */
bool tag_set_has_tag(const TagSet *tags, struct span properties);

/* Whatever it is, as tags; NULL without exception if it is none. Borrowed. */
const TagSet *as_tag_set(PyObject *value);

/* Adds the type to the module. */
int tag_set_add(PyObject *module);

#endif
