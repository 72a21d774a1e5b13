/* What a read found, as PythonFound; its runs and records are made when they are asked for. */
#ifndef SEGLOG_FOUND_TYPE_H
#define SEGLOG_FOUND_TYPE_H

#include "python_api.h"

#include <stdbool.h>
#include <stdint.h>

/* Records that are neighbours: a stretch of `memory`, which is held. */
struct found_run {
    PyObject *memory;
    int64_t start, size_bytes;
};

/* Records and how they lie in runs; the arrays are PyMem's, NULL for none. */
struct found_records {
    int32_t *sizes;
    size_t count;
    struct found_run *runs;
    size_t run_count;
};

struct found_place {
    PyObject *status;
    long long next_offset, min_offset, max_offset;
};

/* Returns a new object of `type`, Found or one made of it. It takes the records, also where it fails. */
PyObject *found_new(PyTypeObject *type, allocfunc allocate, const struct found_place *place,
                    struct found_records *records);

/* Returns a part of a view of bytes, as a slice does. */
PyObject *found_slice(PyObject *memory, int64_t start, int64_t size_bytes);

/* Gives up the records. */
void found_free(struct found_records *records);

/* Adds the type to the module. */
int found_type_add(PyObject *module);

/* Whether it is Found or a type made of it. */
bool found_type_is(PyObject *type);

#endif
