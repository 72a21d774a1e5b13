/* One instruction takes eight bytes, and a result is there three steps later: so three blocks are summed at a
 * time.
 */

#include "crc32c.h"

#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)

#define WITH_CRC32C __attribute__((target("sse4.2")))

enum { AT_ONCE = 3, WORD = 8 };

bool crc32c_is_quick(void)
{
    return __builtin_cpu_supports("sse4.2");
}

static uint64_t word_at(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

WITH_CRC32C static uint32_t sum_of(struct span bytes)
{
    uint64_t crc = ~0u;
    size_t at = 0;
    for (; bytes.size - at >= WORD; at += WORD)
        crc = __builtin_ia32_crc32di(crc, word_at(bytes.at + at));
    uint32_t rest = (uint32_t)crc;
    for (; at < bytes.size; at++)
        rest = __builtin_ia32_crc32qi(rest, bytes.at[at]);
    return ~rest;
}

/* Of three blocks one behind the other, whose size is a multiple of eight. */
WITH_CRC32C static void sum_three(const uint8_t *first, size_t block_size, uint32_t *sums)
{
    const uint8_t *second = first + block_size, *third = second + block_size;
    uint64_t one = ~0u, two = ~0u, three = ~0u;
    for (size_t at = 0; at < block_size; at += WORD) {
        one = __builtin_ia32_crc32di(one, word_at(first + at));
        two = __builtin_ia32_crc32di(two, word_at(second + at));
        three = __builtin_ia32_crc32di(three, word_at(third + at));
    }
    sums[0] = ~(uint32_t)one;
    sums[1] = ~(uint32_t)two;
    sums[2] = ~(uint32_t)three;
}

void crc32c_of_blocks(struct span bytes, size_t block_size, uint32_t *sums)
{
    if (block_size % WORD == 0)
        for (; bytes.size / block_size >= AT_ONCE; sums += AT_ONCE) {
            sum_three(bytes.at, block_size, sums);
            bytes = span_of(bytes.at + AT_ONCE * block_size, bytes.size - AT_ONCE * block_size);
        }
    while (bytes.size) {
        size_t size = bytes.size < block_size ? bytes.size : block_size;
        *sums++ = sum_of(span_of(bytes.at, size));
        bytes = span_of(bytes.at + size, bytes.size - size);
    }
}

#else

bool crc32c_is_quick(void)
{
    return false;
}

void crc32c_of_blocks(struct span bytes, size_t block_size, uint32_t *sums)
{
    (void)bytes;
    (void)block_size;
    (void)sums;
}

#endif
