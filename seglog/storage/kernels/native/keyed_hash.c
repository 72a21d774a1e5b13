#include "keyed_hash.h"

#include <string.h>

struct state {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotated(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static void mix(struct state *s)
{
    s->v0 += s->v1;
    s->v2 += s->v3;
    s->v1 = rotated(s->v1, 13) ^ s->v0;
    s->v3 = rotated(s->v3, 16) ^ s->v2;
    s->v0 = rotated(s->v0, 32);
    s->v2 += s->v1;
    s->v0 += s->v3;
    s->v1 = rotated(s->v1, 17) ^ s->v2;
    s->v3 = rotated(s->v3, 21) ^ s->v0;
    s->v2 = rotated(s->v2, 32);
}

static void take_word(struct state *s, uint64_t word)
{
    s->v3 ^= word;
    mix(s);
    s->v0 ^= word;
}

/* Words are of the machine's byte order: no hash leaves the process. */
uint64_t keyed_hash(struct hash_seed seed, struct span bytes)
{
    struct state s = {
        seed.first ^ 0x736f6d6570736575,
        seed.second ^ 0x646f72616e646f6d,
        seed.first ^ 0x6c7967656e657261,
        seed.second ^ 0x7465646279746573,
    };
    uint64_t word, last = (uint64_t)bytes.size << 56;
    for (; bytes.size >= sizeof word; bytes = span_of(bytes.at + sizeof word, bytes.size - sizeof word)) {
        memcpy(&word, bytes.at, sizeof word);
        take_word(&s, word);
    }
    for (size_t i = 0; i < bytes.size; i++)
        last |= (uint64_t)bytes.at[i] << (8 * i);
    take_word(&s, last);
    s.v2 ^= 0xff;
    for (int round = 0; round < 3; round++)
        mix(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
