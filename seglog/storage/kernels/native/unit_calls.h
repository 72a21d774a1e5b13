/* What of units.h the module offers; said in _native.pyi. */
#ifndef SEGLOG_UNIT_CALLS_H
#define SEGLOG_UNIT_CALLS_H

#include "python_api.h"

PyObject *py_group_rows(PyObject *module, PyObject *args);
PyObject *py_rows_stand_in(PyObject *module, PyObject *args);

#endif
