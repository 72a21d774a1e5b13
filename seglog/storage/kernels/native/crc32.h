/* CRC-32 as zlib and RocketMQ have it (polynomial 0x04C11DB7, reflected). */
#ifndef SEGLOG_CRC32_H
#define SEGLOG_CRC32_H

#include <stdbool.h>

#include "bytes.h"

/* Makes the tables and looks at the CPU; to be called before anything else, as often as one likes. */
void crc32_prepare(void);

/* Whether carry-less multiplication serves, for messages of some length. */
bool crc32_multiplies(void);

uint32_t crc32_of(struct span bytes);

/* Goes on with the CRC of what stands before the bytes, 0 before any. */
uint32_t crc32_on(uint32_t crc, struct span bytes);

/* The CRC of two stretches, by that of each and the size of the second, which is at least 4. Only where
 * crc32_multiplies(). Quickest if the size is that of the call before.
 */
uint32_t crc32_joined(uint32_t first, uint32_t second, size_t second_size);

/* The same without carry-less multiplication, whatever the CPU can do. */
uint32_t crc32_by_table(struct span bytes);

#endif
