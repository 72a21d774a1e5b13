/* Pages of a file's map made ready to be written to, before anything is. */
#ifndef SEGLOG_POPULATE_H
#define SEGLOG_POPULATE_H

#include <stdbool.h>

#include "bytes.h"

/* Populates the whole pages within the span; their content stays as it is, whoever writes to them meanwhile.
 * False where the system cannot (Linux before 5.14), or a page has no space behind it: no signal then. */
bool populate(struct span pages);

#endif
