/* The walk and the search for records as functions of the module; what they do is said in _native.pyi. */
#ifndef SEGLOG_WALK_CALLS_H
#define SEGLOG_WALK_CALLS_H

#include "python_api.h"

PyObject *py_walk(PyObject *module, PyObject *args);
PyObject *py_walk_stretch(PyObject *module, PyObject *args);
PyObject *py_walk_into(PyObject *module, PyObject *args);
PyObject *py_find_record(PyObject *module, PyObject *args);

#endif
