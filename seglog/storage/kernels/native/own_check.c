#include "own_check.h"

#include <string.h>

#include "../layout.h"

void own_check_digits(uint32_t crc, uint8_t *digits)
{
    for (int i = 0; i < SEGLOG_CRC_DIGITS; i++, crc /= 10)
        digits[i] = (uint8_t)('0' + crc % 10);
}

void own_check_write(uint32_t crc, uint8_t *entry)
{
    static const char name[] = SEGLOG_CRC_NAME;
    memcpy(entry, name, sizeof name - 1);
    own_check_digits(crc & SEGLOG_CRC_MASK, entry + sizeof name - 1);
    entry[SEGLOG_CRC_PROPERTY_BYTES - 1] = SEGLOG_ENTRY_END;
}
