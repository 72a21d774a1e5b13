/* Numbers the queues that a walk meets, in the order in which they appear. */
#ifndef SEGLOG_QUEUES_H
#define SEGLOG_QUEUES_H

#include <stdbool.h>

#include "bytes.h"

struct queue {
    struct span topic; /* a copy: the log may be gone when it is asked for */
    uint64_t hash;
    uint32_t key_hash_before; /* as index_keys.h says */
    int32_t id;
};

/* A hash table: slots hold indexes of `list`, from 1. All zero is an empty one. */
struct queues {
    struct queue *list;
    uint8_t *unlisted; /* a topic while it is copied */
    uint32_t *slots;
    size_t count, room, slot_count;
};

/* Given once, so that nobody can know which topics collide. */
void queues_seed(uint64_t seed);

/* The number of a queue, a new one at its first record; -1 without memory. */
int32_t queues_number(struct queues *queues, struct span topic, int32_t queue_id);

void queues_free(struct queues *queues);

#endif
