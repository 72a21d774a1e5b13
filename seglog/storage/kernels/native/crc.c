/* CRC-32 of records and CRC-32C of blocks of files, each with the fastest instructions of the CPU. */

#include "python_api.h"
#include "record.h"

enum {
    FOLD_UNIT = 16,
    FOLD_LEAST = 64,
    LONG_BYTES = 32 << 10 /* from this length on the GIL is released */
};

/* CRC-32 by folding: each 64 bytes are multiplied and added to the next 64, until 16 are left to reduce.
 *
 * Gopal, Ozturk et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction" (Intel,
 * 2009); the constants are those of its section on reflected polynomials.
 */

#if defined(__x86_64__)

#include <immintrin.h>

#define CLMUL __attribute__((target("pclmul,sse4.1")))

static bool crc32_can_fold(void)
{
    return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}

CLMUL static __m128i load(const uint8_t *at)
{
    return _mm_loadu_si128((const __m128i *)(const void *)at);
}

/* Moves 16 bytes by the distance of the factors, and adds the bytes at the new place. */
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

/* Continues a CRC (not inverted) over at least FOLD_LEAST bytes, a multiple of FOLD_UNIT. */
CLMUL static uint32_t crc32_fold(uint32_t crc, struct span bytes)
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

/* Returns the carry-less product. */
CLMUL static uint64_t crc32_product(uint32_t one, uint32_t other)
{
    __m128i x = _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)one), _mm_cvtsi32_si128((int)other), 0x00);
    return (uint64_t)_mm_extract_epi64(x, 0);
}

#else

static bool crc32_can_fold(void)
{
    return false;
}

/* Never called: this CPU has no instruction for folding. */
static uint32_t crc32_fold(uint32_t crc, struct span bytes)
{
    (void)bytes;
    return crc;
}

/* Never called, as crc32_fold. */
static uint64_t crc32_product(uint32_t one, uint32_t other)
{
    (void)other;
    return one;
}

#endif

#define POLYNOMIAL 0xEDB88320u /* reflected */

enum { STEP = 8 };

/* remainders[k][b]: the remainder of byte b with k zero bytes behind it. */
static uint32_t remainders[STEP][256];
static bool can_fold;

enum { LEAST_EXPONENT = 2, EXPONENTS = 40 };

/* size_factors[k]: the factor that moves a remainder by 2**k bytes. */
static uint32_t size_factors[EXPONENTS];

static uint32_t remainder_of(uint32_t byte)
{
    for (int bit = 0; bit < 8; bit++)
        byte = byte & 1 ? byte >> 1 ^ POLYNOMIAL : byte >> 1;
    return byte;
}

bool crc32_multiplies(void)
{
    return can_fold;
}

static uint32_t crc_step(uint32_t crc, const uint8_t *at)
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
        crc = crc_step(crc, bytes.at + at);
    for (; at < bytes.size; at++)
        crc = crc >> 8 ^ remainders[0][(crc ^ bytes.at[at]) & 0xFF];
    return crc;
}

static uint32_t crc32_by_table(uint32_t crc, struct span bytes)
{
    return ~with_tables(~crc, bytes);
}

uint32_t crc32_on(uint32_t crc, struct span bytes)
{
    crc = ~crc;
    if (can_fold && bytes.size >= FOLD_LEAST) {
        size_t folded = bytes.size - bytes.size % FOLD_UNIT;
        crc = crc32_fold(crc, span_of(bytes.at, folded));
        bytes = span_after(bytes, folded);
    }
    return ~with_tables(crc, bytes);
}

uint32_t crc32_of(struct span bytes)
{
    return crc32_on(0, bytes);
}

/* Bits are reflected: the highest bit is x**0. The product of two numbers has its x**0 one bit too low, and the
 * reduction as eight bytes of a message multiplies it by x**32. So the factor for a size of n bytes is
 * x**(8 * n - 32): the product of the factors for two sizes is the factor for their sum.
 */
static uint32_t times(uint32_t one, uint32_t other)
{
    uint64_t product = crc32_product(one, other) << 1;
    uint8_t bytes[STEP];
    for (int i = 0; i < STEP; i++)
        bytes[i] = (uint8_t)(product >> 8 * i);
    return crc_step(0, bytes);
}

static void prepare_sizes(void)
{
    size_factors[LEAST_EXPONENT] = 0x80000000u; /* 4 bytes: x**0 */
    for (int exponent = LEAST_EXPONENT + 1; exponent < EXPONENTS; exponent++)
        size_factors[exponent] = times(size_factors[exponent - 1], size_factors[exponent - 1]);
}

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

uint32_t crc32_remainder(const uint8_t bytes[STEP])
{
    return crc_step(0, bytes);
}

uint32_t crc32_behind_zeros(uint32_t remainder, size_t size)
{
    if (can_fold && size >= 1u << LEAST_EXPONENT)
        return crc32_joined(remainder, 0, size);
    while (size--)
        remainder = remainder >> 8 ^ remainders[0][remainder & 0xFF];
    return remainder;
}

/* One instruction takes eight bytes and has a latency of three cycles: so three blocks are summed in parallel. */

#if defined(__x86_64__) && defined(__GNUC__)

#define WITH_CRC32C __attribute__((target("sse4.2")))

enum { AT_ONCE = 3, WORD = 8 };

static bool crc32c_is_quick(void)
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

/* Sums three consecutive blocks, whose size is a multiple of eight. */
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

static void crc32c_of_blocks(struct span bytes, size_t block_size, uint32_t *sums)
{
    if (block_size % WORD == 0)
        for (; bytes.size / block_size >= AT_ONCE; sums += AT_ONCE) {
            sum_three(bytes.at, block_size, sums);
            bytes = span_after(bytes, AT_ONCE * block_size);
        }
    while (bytes.size) {
        size_t size = bytes.size < block_size ? bytes.size : block_size;
        *sums++ = sum_of(span_of(bytes.at, size));
        bytes = span_after(bytes, size);
    }
}

#else

static bool crc32c_is_quick(void)
{
    return false;
}

static void crc32c_of_blocks(struct span bytes, size_t block_size, uint32_t *sums)
{
    (void)bytes;
    (void)block_size;
    (void)sums;
}

#endif

struct sum_job {
    struct span bytes;
    size_t block_size;
    uint32_t *sums;
};

static void sum_job(void *state)
{
    struct sum_job *job = state;
    crc32c_of_blocks(job->bytes, job->block_size, job->sums);
}

static PyObject *sum_at(const void *sums, size_t i)
{
    return PyLong_FromUnsignedLong(((const uint32_t *)sums)[i]);
}

static PyObject *sums_of(const Py_buffer *view, size_t block_size)
{
    size_t size = (size_t)view->len, count = size / block_size + (size % block_size != 0);
    struct sum_job job = {span_in(view), block_size, PyMem_Calloc(count ? count : 1, sizeof *job.sums)};
    if (!job.sums)
        return PyErr_NoMemory();
    PyObject *list = call_guarded(view, sum_job, &job) ? list_of(count, sum_at, job.sums) : NULL;
    PyMem_Free(job.sums);
    return list;
}

PyObject *py_block_sums(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view;
    Py_ssize_t block_size;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*n", &view, &block_size))
        return NULL;
    if (block_size <= 0)
        PyErr_SetString(PyExc_ValueError, "a block has some bytes");
    else if (!crc32c_is_quick())
        result = Py_BuildValue("");
    else
        result = sums_of(&view, (size_t)block_size);
    PyBuffer_Release(&view);
    return result;
}

static PyObject *crc32_with(PyObject *args, uint32_t (*compute)(uint32_t, struct span))
{
    Py_buffer view;
    unsigned int before = 0;
    uint32_t crc;
    if (!PyArg_ParseTuple(args, "y*|I", &view, &before))
        return NULL;
    if (view.len >= LONG_BYTES) {
        Py_BEGIN_ALLOW_THREADS
        crc = compute(before, span_in(&view));
        Py_END_ALLOW_THREADS
    } else {
        crc = compute(before, span_in(&view));
    }
    PyBuffer_Release(&view);
    return PyLong_FromUnsignedLong(crc);
}

PyObject *py_crc32(PyObject *Py_UNUSED(module), PyObject *args)
{
    return crc32_with(args, crc32_on);
}

PyObject *py_crc32_by_table(PyObject *Py_UNUSED(module), PyObject *args)
{
    return crc32_with(args, crc32_by_table);
}
