/* Sums of blocks as a function of the module; _native.pyi says the rest. */
#ifndef SEGLOG_SUM_CALLS_H
#define SEGLOG_SUM_CALLS_H

#include "python_api.h"

PyObject *py_block_sums(PyObject *module, PyObject *args);

#endif
