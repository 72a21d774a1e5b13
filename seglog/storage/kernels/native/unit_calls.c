#include "unit_calls.h"

#include "../layout.h"
#include "units.h"

PyObject *py_rows_stand_in(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer rows, units;
    bool stand;
    if (!PyArg_ParseTuple(args, "y*y*", &rows, &units))
        return NULL;
    size_t count = (size_t)rows.len / SEGLOG_ROW_SIZE;
    if (count != (size_t)units.len / SEGLOG_CQ_UNIT_SIZE) {
        stand = false;
    } else {
        Py_BEGIN_ALLOW_THREADS
        stand = rows_stand_in(rows.buf, count, units.buf);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&units);
    PyBuffer_Release(&rows);
    return PyBool_FromLong(stand);
}
