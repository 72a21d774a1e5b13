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

/* The CRC of what has the CRC `before` with these bytes behind it. */
uint32_t crc32_more(uint32_t before, struct span bytes);

/* The same without carry-less multiplication, whatever the CPU can do. */
uint32_t crc32_by_table(struct span bytes);

#endif
