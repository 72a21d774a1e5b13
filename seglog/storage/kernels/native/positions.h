/* Positions in a log, from Python and as a list for it. */
#ifndef SEGLOG_POSITIONS_H
#define SEGLOG_POSITIONS_H

#include "python_api.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A list of ints; NULL with an exception. */
static inline PyObject *list_of_positions(const size_t *positions, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *position = PyLong_FromSize_t(positions[i]);
        if (!position || PyList_SetItem(list, (Py_ssize_t)i, position) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* Takes a physical offset. False with an exception; *is_possible tells whether a record may have it. */
static inline bool take_phy_offset(PyObject *value, int64_t *phy_offset, bool *is_possible)
{
    int overflow;
    *phy_offset = PyLong_AsLongLongAndOverflow(value, &overflow);
    *is_possible = !overflow && *phy_offset >= 0;
    return !PyErr_Occurred();
}

#endif
