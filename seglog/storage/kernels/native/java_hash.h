/* Java's String.hashCode of a text that is given as UTF-8. */
#ifndef SEGLOG_JAVA_HASH_H
#define SEGLOG_JAVA_HASH_H

#include "bytes.h"

/* What is not UTF-8 counts as U+FFFD, as often as Python's "replace" and Java's decoder put it. */
int32_t java_hash(struct span text);

/* The hash of a text that begins with one whose hash is `begun`, and ends with this. */
int32_t java_hash_on(int32_t begun, struct span text);

#endif
