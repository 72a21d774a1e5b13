/* The results of puts of the fast path: numbers, for which Python objects are created on demand. */
#ifndef SEGLOG_PUT_RESULT_H
#define SEGLOG_PUT_RESULT_H

#include "python_api.h"

/* The fields of a PutResult; it owns its references to objects. */
typedef struct {
    PyObject_HEAD
    PyObject *topic, *store_host, *durability;
    long long queue_offset, phy_offset, size_bytes, store_timestamp_ms;
    int queue_id;
} PutResult;

/* Sets the named tuple that results behave as; must be called once before put_result_new. Returns false with an
 * exception. */
bool put_result_bind(PyTypeObject *tuple_type);

/* Returns a result whose numbers are not set yet; NULL with an exception. Runs no Python code. */
PutResult *put_result_new(PyObject *topic, PyObject *store_host, PyObject *durability);

#endif
