/* Big-endian numbers out of a log and into it, and stretches of it.
 *
 * A log may be written to while it is read here without the GIL. What a size was when it was checked, it
 * must be when it is used: every number passes through a register that the compiler cannot fill again
 * from memory.
 */
#ifndef SEGLOG_BYTES_H
#define SEGLOG_BYTES_H

#include <stddef.h>
#include <stdint.h>

/* Some bytes that belong to somebody else. */
struct span {
    const uint8_t *at;
    size_t size;
};

static inline struct span span_of(const uint8_t *at, size_t size)
{
    struct span span = {at, size};
    return span;
}

/* The last bytes, all of them if there are no more. */
static inline struct span span_last(struct span bytes, size_t most)
{
    return bytes.size <= most ? bytes : span_of(bytes.at + (bytes.size - most), most);
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

static inline void write_u32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 24);
    at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8);
    at[3] = (uint8_t)value;
}

static inline void write_u64(uint8_t *at, uint64_t value)
{
    write_u32(at, (uint32_t)(value >> 32));
    write_u32(at + 4, (uint32_t)value);
}

#endif
