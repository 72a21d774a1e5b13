/* Work over a buffer of Python's that may be the map of a file. */
#ifndef SEGLOG_GUARDED_CALL_H
#define SEGLOG_GUARDED_CALL_H

#include <stdbool.h>

#include "python_api.h"

/* Does the work without the GIL. False with TruncatedError if a byte of the buffer could not be read. */
bool call_guarded(const Py_buffer *view, void (*work)(void *state), void *state);

#endif
