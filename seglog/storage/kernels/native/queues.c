/* Memory comes from malloc: the walk runs without the GIL. */

#include "queues.h"

#include <stdlib.h>
#include <string.h>

#include "guard.h"
#include "index_keys.h"

#define FACTOR 0x9E3779B97F4A7C15u /* 2**64 over the golden ratio: odd, and its bits are well mixed */

enum { FIRST_SLOTS = 64 };

static uint64_t hash_seed;

void queues_seed(uint64_t seed)
{
    hash_seed = seed;
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * FACTOR;
    return hash ^ hash >> 32;
}

static uint64_t hash_of(struct span topic, int32_t queue_id)
{
    uint64_t hash = mix(hash_seed, (uint64_t)topic.size << 32 | (uint32_t)queue_id);
    uint64_t word;
    size_t at = 0;
    for (; topic.size - at >= sizeof word; at += sizeof word) {
        memcpy(&word, topic.at + at, sizeof word);
        hash = mix(hash, word);
    }
    word = 0;
    memcpy(&word, topic.at + at, topic.size - at);
    return mix(hash, word);
}

static bool is_queue(const struct queue *queue, struct span topic, int32_t id, uint64_t hash)
{
    return queue->hash == hash && queue->id == id && queue->topic.size == topic.size &&
           memcmp(queue->topic.at, topic.at, topic.size) == 0;
}

static uint32_t *free_slot(const struct queues *queues, uint64_t hash)
{
    size_t mask = queues->slot_count - 1;
    size_t slot = hash & mask;
    while (queues->slots[slot])
        slot = (slot + 1) & mask;
    return &queues->slots[slot];
}

/* Makes room for twice as many; at most half of the slots are ever taken. */
static bool grow(struct queues *queues)
{
    size_t slot_count = queues->slot_count ? 2 * queues->slot_count : FIRST_SLOTS;
    struct queue *list = realloc(queues->list, slot_count / 2 * sizeof *list);
    if (!list)
        return false;
    queues->list = list;
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (!slots)
        return false;
    free(queues->slots);
    queues->slots = slots;
    queues->slot_count = slot_count;
    queues->room = slot_count / 2;
    for (size_t number = 0; number < queues->count; number++)
        *free_slot(queues, queues->list[number].hash) = (uint32_t)(number + 1);
    return true;
}

static int32_t find(const struct queues *queues, struct span topic, int32_t queue_id, uint64_t hash)
{
    size_t mask = queues->slot_count - 1;
    for (size_t slot = hash & mask; queues->slots[slot]; slot = (slot + 1) & mask) {
        uint32_t number = queues->slots[slot] - 1;
        if (is_queue(&queues->list[number], topic, queue_id, hash))
            return (int32_t)number;
    }
    return -1;
}

static bool copy_topic(struct queues *queues, struct span topic)
{
    queues->unlisted = malloc(topic.size ? topic.size : 1);
    if (!queues->unlisted)
        return false;
    settle_memory();
    memcpy(queues->unlisted, topic.at, topic.size);
    return true;
}

int32_t queues_number(struct queues *queues, struct span topic, int32_t queue_id)
{
    uint64_t hash = hash_of(topic, queue_id);
    if (queues->slot_count) {
        int32_t number = find(queues, topic, queue_id, hash);
        if (number >= 0)
            return number;
    }
    if (queues->count >= INT32_MAX || (queues->count == queues->room && !grow(queues)))
        return -1;
    if (!copy_topic(queues, topic))
        return -1;
    struct span copy = span_of(queues->unlisted, topic.size);
    struct queue queue = {copy, hash, key_hash_before(copy), queue_id};
    queues->list[queues->count] = queue;
    queues->unlisted = NULL;
    *free_slot(queues, hash) = (uint32_t)++queues->count;
    return (int32_t)(queues->count - 1);
}

void queues_free(struct queues *queues)
{
    for (size_t number = 0; number < queues->count; number++)
        free((void *)(uintptr_t)queues->list[number].topic.at);
    free(queues->unlisted);
    free(queues->list);
    free(queues->slots);
}
