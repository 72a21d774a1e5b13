/* An object of the type Lane, for the files that it is made of. */
#ifndef SEGLOG_LANE_OBJECT_H
#define SEGLOG_LANE_OBJECT_H

#include "python_api.h"

#include "lane.h"

/* What a lane calls, compares with or gives out; LaneOwner has an attribute for each. */
enum known {
    WAITING,
    NOTIFY,
    ENSURE,
    LEND,
    SLOW_PUT,
    SLOW_PUT_BATCH,
    SLOW_APPEND,
    SLOW_APPEND_BATCH,
    PUT_RESULT,
    BATCH_RESULT,
    NEW_MESSAGE,
    RAW_MESSAGE,
    USUAL_STORE_HOST,
    USUAL_DURABILITY,
    SYNC,
    KNOWN,
    NO_WAY = KNOWN
};

typedef struct {
    PyObject_HEAD
    struct lane lane;
    PyObject *known[KNOWN]; /* NULL once the garbage collector took them */
    allocfunc new_result;
    struct host store_host;
    bool record_crc;
} Lane;

/* Its methods that append, as vector calls. */
PyObject *lane_put(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *lane_put_soon(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *lane_put_batch(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *lane_append_one(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *lane_append_batch(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);

/* Interns what they need; to be called before anything else. */
bool lane_calls_prepare(void);

#endif
