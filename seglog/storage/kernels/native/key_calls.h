/* What the index must know of a stretch of the log, as a function of the module; _native.pyi says the rest. */
#ifndef SEGLOG_KEY_CALLS_H
#define SEGLOG_KEY_CALLS_H

#include "python_api.h"

PyObject *py_index_keys(PyObject *module, PyObject *args);
PyObject *py_have_key(PyObject *module, PyObject *args);
PyObject *py_key_digest(PyObject *module, PyObject *args);
PyObject *py_key_digests(PyObject *module, PyObject *args);

#endif
