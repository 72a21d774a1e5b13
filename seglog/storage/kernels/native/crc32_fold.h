/* CRC-32 by carry-less multiplication, where the CPU has it. */
#ifndef SEGLOG_CRC32_FOLD_H
#define SEGLOG_CRC32_FOLD_H

#include <stdbool.h>

#include "bytes.h"

enum {
    CRC32_FOLD_UNIT = 16,
    CRC32_FOLD_LEAST = 64
};

bool crc32_can_fold(void);

/* Goes on with a CRC (not inverted) over at least CRC32_FOLD_LEAST bytes, a multiple of CRC32_FOLD_UNIT.
 * Only where crc32_can_fold().
 */
uint32_t crc32_fold(uint32_t crc, struct span bytes);

/* The product without carries. Only where crc32_can_fold(). */
uint64_t crc32_product(uint32_t one, uint32_t other);

#endif
