/* Python's API, as far as it is stable from 3.11 on: one build serves all later versions. */
#ifndef SEGLOG_PYTHON_H
#define SEGLOG_PYTHON_H

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#endif
