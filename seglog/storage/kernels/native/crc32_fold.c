/* CRC-32 by folding: 64 bytes at a time are multiplied onto the next 64, until 16 are left to reduce.
 *
 * Gopal, Ozturk et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction" (Intel,
 * 2009); the constants are those of its section on reflected polynomials.
 */

#include "crc32_fold.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define CLMUL __attribute__((target("pclmul,sse4.1")))

bool crc32_can_fold(void)
{
    return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}

CLMUL static __m128i load(const uint8_t *at)
{
    return _mm_loadu_si128((const __m128i *)(const void *)at);
}

/* Moves 16 bytes as far as the factors say, and adds what lies there. */
CLMUL static __m128i fold(__m128i bytes, __m128i factors, __m128i there)
{
    __m128i low = _mm_clmulepi64_si128(bytes, factors, 0x00);
    __m128i high = _mm_clmulepi64_si128(bytes, factors, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), there);
}

/* The remainder of 16 bytes: 128 bits to 96, to 64, and by Barrett's reduction to 32. */
CLMUL static uint32_t reduce(__m128i bytes, __m128i by_16)
{
    const __m128i by_4 = _mm_set_epi64x(0, 0x163cd6124);
    const __m128i barrett = _mm_set_epi64x(0x1f7011641, 0x1db710641);
    const __m128i low_halves = _mm_setr_epi32(-1, 0, -1, 0);
    __m128i x = _mm_xor_si128(_mm_srli_si128(bytes, 8), _mm_clmulepi64_si128(bytes, by_16, 0x10));
    __m128i rest = _mm_srli_si128(x, 4);
    x = _mm_xor_si128(rest, _mm_clmulepi64_si128(_mm_and_si128(x, low_halves), by_4, 0x00));
    __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(x, low_halves), barrett, 0x10);
    quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_halves), barrett, 0x00);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(x, quotient), 1);
}

CLMUL uint32_t crc32_fold(uint32_t crc, struct span bytes)
{
    const __m128i by_64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
    const __m128i by_16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    const uint8_t *at = bytes.at;
    size_t left = bytes.size - 64;
    __m128i x0 = _mm_xor_si128(load(at), _mm_cvtsi32_si128((int)crc));
    __m128i x1 = load(at + 16), x2 = load(at + 32), x3 = load(at + 48);
    for (at += 64; left >= 64; at += 64, left -= 64) {
        x0 = fold(x0, by_64, load(at));
        x1 = fold(x1, by_64, load(at + 16));
        x2 = fold(x2, by_64, load(at + 32));
        x3 = fold(x3, by_64, load(at + 48));
    }
    x0 = fold(fold(fold(x0, by_16, x1), by_16, x2), by_16, x3);
    for (; left >= 16; at += 16, left -= 16)
        x0 = fold(x0, by_16, load(at));
    return reduce(x0, by_16);
}

CLMUL uint64_t crc32_product(uint32_t one, uint32_t other)
{
    __m128i x = _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)one), _mm_cvtsi32_si128((int)other), 0x00);
    return (uint64_t)_mm_extract_epi64(x, 0);
}

#else

bool crc32_can_fold(void)
{
    return false;
}

/* Never called: there is nothing to fold with. */
uint32_t crc32_fold(uint32_t crc, struct span bytes)
{
    (void)bytes;
    return crc;
}

/* Never called either. */
uint64_t crc32_product(uint32_t one, uint32_t other)
{
    (void)other;
    return one;
}

#endif
