/* Java's String.hashCode of a text that is given as UTF-8. */
#ifndef SEGLOG_JAVA_HASH_H
#define SEGLOG_JAVA_HASH_H

#include "bytes.h"

/* What is not UTF-8 counts as U+FFFD, as often as Python's "replace" and Java's decoder put it. */
int32_t java_hash(struct span text);

/* Goes on with the hash of what stands before the text. */
uint32_t java_hash_on(uint32_t code, struct span text);

#endif
