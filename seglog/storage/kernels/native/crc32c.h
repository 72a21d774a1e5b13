/* CRC-32C (Castagnoli), as seals have it of blocks of a file. */
#ifndef SEGLOG_CRC32C_H
#define SEGLOG_CRC32C_H

#include <stdbool.h>

#include "bytes.h"

/* Whether the CPU has an instruction for it: without one nothing of this is to be called. */
bool crc32c_is_quick(void);

/* Sums the blocks of some bytes, the last of which may be shorter. */
void crc32c_of_blocks(struct span bytes, size_t block_size, uint32_t *sums);

#endif
