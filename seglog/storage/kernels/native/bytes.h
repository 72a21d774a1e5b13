/* Reads and writes big-endian numbers of a log, spans of its bytes, and rows in the byte order of the machine.
 *
 * Another thread or process may write to a log while this code reads it without the GIL. A size must have the
 * same value when it is used as when it was checked: every number passes through a register that the compiler
 * cannot load again from memory.
 */
#ifndef SEGLOG_BYTES_H
#define SEGLOG_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../layout.h"

/* Bytes that another object owns. */
struct span {
    const uint8_t *at;
    size_t size;
};

static inline struct span span_of(const void *at, size_t size)
{
    struct span span = {at, size};
    return span;
}

/* The bytes of a string literal, without its final NUL. */
#define TEXT(literal) span_of((literal), sizeof(literal) - 1)

/* Returns the bytes behind the first `size` bytes. */
static inline struct span span_after(struct span bytes, size_t size)
{
    return span_of(bytes.at + size, bytes.size - size);
}

/* Prefetches the next record while this one is decoded and used: reading a record that is in no cache takes as long
 * as all other work. The next record is probably about as long as this one.
 */
static inline void fetch_soon(struct span following, size_t size)
{
    enum { LINE_BYTES = 64, MOST_BYTES = 2048 };
    size_t most = size < MOST_BYTES ? size : MOST_BYTES;
    for (size_t at = 0; at < most && at < following.size; at += LINE_BYTES)
        __builtin_prefetch(following.at + at);
}

/* Returns the last `most` bytes, or all bytes if there are fewer. */
static inline struct span span_last(struct span bytes, size_t most)
{
    return bytes.size <= most ? bytes : span_after(bytes, bytes.size - most);
}

/* Returns the number of bytes before the first `byte`, or of all bytes if there is none. */
static inline size_t span_size_up_to(struct span bytes, uint8_t byte)
{
    const uint8_t *found = bytes.size ? memchr(bytes.at, byte, bytes.size) : NULL;
    return found ? (size_t)(found - bytes.at) : bytes.size;
}

/* Removes the bytes before the next `byte`, and that byte, from the front of `rest`; returns the bytes before. */
static inline struct span span_take_piece(struct span *rest, uint8_t byte)
{
    struct span piece = span_of(rest->at, span_size_up_to(*rest, byte));
    *rest = span_after(*rest, piece.size < rest->size ? piece.size + 1 : piece.size);
    return piece;
}

static inline bool span_begins_with(struct span bytes, struct span text)
{
    return bytes.size >= text.size && memcmp(bytes.at, text.at, text.size) == 0;
}

static inline bool spans_are_equal(struct span one, struct span other)
{
    return one.size == other.size && memcmp(one.at, other.at, one.size) == 0;
}

/* Forces all earlier writes into memory; must be called before a guarded read, which may not return. */
static inline void settle_memory(void)
{
    __asm__ volatile("" ::: "memory");
}

static inline uint64_t settled(uint64_t value)
{
    __asm__("" : "+r"(value));
    return value;
}

static inline uint32_t read_u32(const uint8_t *at)
{
    return (uint32_t)settled((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]);
}

static inline uint64_t read_u64(const uint8_t *at)
{
    return (uint64_t)read_u32(at) << 32 | read_u32(at + 4);
}

static inline int16_t read_i16(const uint8_t *at)
{
    return (int16_t)settled((uint64_t)at[0] << 8 | at[1]);
}

static inline int32_t read_i32(const uint8_t *at)
{
    return (int32_t)read_u32(at);
}

static inline int64_t read_i64(const uint8_t *at)
{
    return (int64_t)read_u64(at);
}

static inline void write_u16(uint8_t *at, size_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

/* Swaps and stores a whole number: for byte-by-byte stores the compiler generates thirty instructions. */
static inline void write_u32(uint8_t *at, uint32_t value)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    value = __builtin_bswap32(value);
#endif
    memcpy(at, &value, sizeof value);
}

static inline void write_i64(uint8_t *at, int64_t value)
{
    uint64_t bits = (uint64_t)value;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    bits = __builtin_bswap64(bits);
#endif
    memcpy(at, &bits, sizeof bits);
}

/* Fields of rows, which may be unaligned. */
static inline int64_t row_i64(const uint8_t *at)
{
    int64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline int32_t row_i32(const uint8_t *at)
{
    int32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline void set_row_i64(uint8_t *at, int64_t value)
{
    memcpy(at, &value, sizeof value);
}

static inline void set_row_i32(uint8_t *at, int32_t value)
{
    memcpy(at, &value, sizeof value);
}

#endif
