/* What is done with entries of the key index, as functions of the module; _native.pyi says the rest. */
#ifndef SEGLOG_ENTRY_CALLS_H
#define SEGLOG_ENTRY_CALLS_H

#include "python_api.h"

PyObject *py_entries_extent(PyObject *module, PyObject *args);
PyObject *py_follow_entries(PyObject *module, PyObject *args);
PyObject *py_entries_stand_for(PyObject *module, PyObject *args);

#endif
