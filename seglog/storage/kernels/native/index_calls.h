/* The key index as functions of the module; what they do is said in _native.pyi. */
#ifndef SEGLOG_INDEX_CALLS_H
#define SEGLOG_INDEX_CALLS_H

#include "python_api.h"

PyObject *py_key_rows(PyObject *module, PyObject *args);
PyObject *py_put_keys(PyObject *module, PyObject *args);

#endif
