/* CRC-32: chooses the way to compute it, and computes it eight bytes at a time with tables. */

#include "crc32.h"

#include "crc32_fold.h"

#define POLYNOMIAL 0xEDB88320u /* reflected */

enum { STEP = 8 };

/* remainders[k][b]: of byte b with k zero bytes behind it. */
static uint32_t remainders[STEP][256];
static bool can_fold;

enum { LEAST_EXPONENT = 2, EXPONENTS = 40 };

/* size_factors[k]: what moves a remainder by 2**k bytes. */
static uint32_t size_factors[EXPONENTS];

static uint32_t remainder_of(uint32_t byte)
{
    for (int bit = 0; bit < 8; bit++)
        byte = byte & 1 ? byte >> 1 ^ POLYNOMIAL : byte >> 1;
    return byte;
}

static void prepare_sizes(void);

void crc32_prepare(void)
{
    for (uint32_t byte = 0; byte < 256; byte++)
        remainders[0][byte] = remainder_of(byte);
    for (int zeros = 1; zeros < STEP; zeros++)
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t shorter = remainders[zeros - 1][byte];
            remainders[zeros][byte] = shorter >> 8 ^ remainders[0][shorter & 0xFF];
        }
    can_fold = crc32_can_fold();
    if (can_fold)
        prepare_sizes();
}

bool crc32_multiplies(void)
{
    return can_fold;
}

static uint32_t step(uint32_t crc, const uint8_t *at)
{
    crc ^= (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
    return remainders[7][crc & 0xFF] ^ remainders[6][crc >> 8 & 0xFF] ^ remainders[5][crc >> 16 & 0xFF] ^
           remainders[4][crc >> 24] ^ remainders[3][at[4]] ^ remainders[2][at[5]] ^ remainders[1][at[6]] ^
           remainders[0][at[7]];
}

static uint32_t with_tables(uint32_t crc, struct span bytes)
{
    size_t at = 0;
    for (; bytes.size - at >= STEP; at += STEP)
        crc = step(crc, bytes.at + at);
    for (; at < bytes.size; at++)
        crc = crc >> 8 ^ remainders[0][(crc ^ bytes.at[at]) & 0xFF];
    return crc;
}

uint32_t crc32_by_table(struct span bytes)
{
    return ~with_tables(~0u, bytes);
}

uint32_t crc32_on(uint32_t crc, struct span bytes)
{
    crc = ~crc;
    if (can_fold && bytes.size >= CRC32_FOLD_LEAST) {
        size_t folded = bytes.size - bytes.size % CRC32_FOLD_UNIT;
        crc = crc32_fold(crc, span_of(bytes.at, folded));
        bytes = span_of(bytes.at + folded, bytes.size - folded);
    }
    return ~with_tables(crc, bytes);
}

uint32_t crc32_of(struct span bytes)
{
    return crc32_on(0, bytes);
}

/* Bits are reflected: the highest is x**0. The product of two has its x**0 one bit too low, and as eight
 * bytes of a message it is multiplied by x**32. So what stands for a size of n bytes is x**(8 * n - 32):
 * the product for two sizes stands for their sum.
 */
static uint32_t times(uint32_t one, uint32_t other)
{
    uint64_t product = crc32_product(one, other) << 1;
    uint8_t bytes[STEP];
    for (int i = 0; i < STEP; i++)
        bytes[i] = (uint8_t)(product >> 8 * i);
    return step(0, bytes);
}

static void prepare_sizes(void)
{
    size_factors[LEAST_EXPONENT] = 0x80000000u; /* 4 bytes: x**0 */
    for (int exponent = LEAST_EXPONENT + 1; exponent < EXPONENTS; exponent++)
        size_factors[exponent] = times(size_factors[exponent - 1], size_factors[exponent - 1]);
}

static uint32_t factor_for(size_t size)
{
    uint32_t factor = 0;
    for (int exponent = LEAST_EXPONENT; exponent < EXPONENTS; exponent++)
        if (size >> exponent & 1)
            factor = factor ? times(factor, size_factors[exponent]) : size_factors[exponent];
    for (size_t rest = size % (1u << LEAST_EXPONENT); rest; rest--)
        factor = factor >> 8 ^ remainders[0][factor & 0xFF];
    return factor;
}

uint32_t crc32_joined(uint32_t first, uint32_t second, size_t second_size)
{
    static _Thread_local struct {
        size_t size;
        uint32_t factor;
    } last;
    if (last.size != second_size) {
        last.factor = factor_for(second_size);
        last.size = second_size;
    }
    return second ^ times(first, last.factor);
}
