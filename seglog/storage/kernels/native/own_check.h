/* The entry `__CRC32#` that ends the properties of a record: its own check. */
#ifndef SEGLOG_OWN_CHECK_H
#define SEGLOG_OWN_CHECK_H

#include "bytes.h"

/* Writes the ten digits of a CRC as the entry has them: least significant first. */
void own_check_digits(uint32_t crc, uint8_t *digits);

/* Writes the entry over the last bytes of a record, which are kept free for it. */
void own_check_write(uint8_t *record, size_t size);

#endif
