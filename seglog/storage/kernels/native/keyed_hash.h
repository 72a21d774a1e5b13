/* SipHash-1-3: a hash whose collisions nobody finds who does not know the seed. */
#ifndef SEGLOG_KEYED_HASH_H
#define SEGLOG_KEYED_HASH_H

#include "bytes.h"

struct hash_seed {
    uint64_t first, second;
};

uint64_t keyed_hash(struct hash_seed seed, struct span bytes);

#endif
