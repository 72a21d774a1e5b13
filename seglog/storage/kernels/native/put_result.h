/* What puts of the fast path return: numbers, of which Python gets objects when it asks for them. */
#ifndef SEGLOG_PUT_RESULT_H
#define SEGLOG_PUT_RESULT_H

#include "python_api.h"

/* The fields of a PutResult; objects are its own. */
typedef struct {
    PyObject_HEAD
    PyObject *topic, *store_host, *durability;
    long long queue_offset, phy_offset, size_bytes, store_timestamp_ms;
    int queue_id;
} PutResult;

/* Says what named tuple results stand for, to be called once before any is made; false with an exception. */
bool put_result_bind(PyTypeObject *tuple_type);

/* A result whose numbers are not set yet; NULL with an exception. Runs no code of others. */
PutResult *put_result_new(PyObject *topic, PyObject *store_host, PyObject *durability);

#endif
