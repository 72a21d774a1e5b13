/* Units of a consume queue, beside the rows that they must follow from. */
#ifndef SEGLOG_UNITS_H
#define SEGLOG_UNITS_H

#include <stdbool.h>

#include "bytes.h"

/* Whether rows of one queue follow each other, in the queue and in the log, and their units are these.
 *
 * rows: `count` rows of SEGLOG_ROW_SIZE bytes, in the byte order of the machine.
 * units: `count` units of SEGLOG_CQ_UNIT_SIZE bytes.
 */
bool rows_stand_in(const uint8_t *rows, size_t count, const uint8_t *units);

#endif
