/* The entry `__CRC32#` that ends the properties of a record: its own check. */
#ifndef SEGLOG_OWN_CHECK_H
#define SEGLOG_OWN_CHECK_H

#include "bytes.h"

/* Writes the ten digits of a CRC as the entry has them: least significant first. */
void own_check_digits(uint32_t crc, uint8_t *digits);

/* Writes the entry of a record that has this CRC up to there. */
void own_check_write(uint32_t crc, uint8_t *entry);

#endif
