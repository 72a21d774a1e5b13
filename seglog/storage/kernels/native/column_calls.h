/* Columns of strings out of a log, as functions of the module; _native.pyi says the rest. */
#ifndef SEGLOG_COLUMN_CALLS_H
#define SEGLOG_COLUMN_CALLS_H

#include "python_api.h"

PyObject *py_copy_strings(PyObject *module, PyObject *args);
PyObject *py_property_map(PyObject *module, PyObject *args);
PyObject *py_property_values(PyObject *module, PyObject *args);

#endif
