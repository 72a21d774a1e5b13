/* Bytes of mapped files, for Python: parts of a memory that stays while somebody has one of them. */
#ifndef SEGLOG_LOG_BYTES_H
#define SEGLOG_LOG_BYTES_H

#include "python_api.h"

/* Takes the memory of a buffer of bytes, until nobody has the new object or a part of it. It is a buffer too; NULL
 * with an exception.
 */
PyObject *memory_new(PyObject *view);

bool is_memory(PyObject *value);

/* All of it. */
struct span memory_bytes(PyObject *memory);

/* A part of a memory, which must lie within it; to Python a read-only memoryview. NULL with an exception. */
PyObject *log_bytes_new(PyObject *memory, int64_t start, int64_t size_bytes);

#endif
