/* The keys of a stretch of the log as a function of the module; what it does is said in _native.pyi. */
#ifndef SEGLOG_KEY_CALLS_H
#define SEGLOG_KEY_CALLS_H

#include "python_api.h"

PyObject *py_index_keys(PyObject *module, PyObject *args);

#endif
