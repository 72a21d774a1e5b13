/* Puts keys into a file of the key index, as seglog/storage/format/index_build.py does. */
#ifndef SEGLOG_INDEX_PUT_H
#define SEGLOG_INDEX_PUT_H

#include <stdint.h>

struct index_file {
    uint8_t *bytes; /* a whole file, with a header */
    uint32_t slot_count, entry_count;
};

/* Puts as many of the rows as fit, in order, and returns how many; what index_keys.h says of rows. */
uint32_t index_put(const struct index_file *file, const uint8_t *rows, uint32_t count);

#endif
