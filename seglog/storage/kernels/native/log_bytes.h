/* Bytes of mapped files for Python: parts of a memory, which is kept while any part is referenced. */
#ifndef SEGLOG_LOG_BYTES_H
#define SEGLOG_LOG_BYTES_H

#include "python_api.h"

/* Returns an object that holds a buffer of bytes while the object or a part of it is referenced. The object is a
 * buffer too. NULL with an exception.
 */
PyObject *memory_new(PyObject *view);

bool is_memory(PyObject *value);

/* Returns all bytes of a memory. */
struct span memory_bytes(PyObject *memory);

/* Returns a part of a memory, which must be within it; to Python it is a read-only memoryview. NULL with an
 * exception. */
PyObject *log_bytes_new(PyObject *memory, int64_t start, int64_t size_bytes);

#endif
