/* The type Lane: what a store's puts enter first. Its contract is that of PythonLane. */
#ifndef SEGLOG_LANE_TYPE_H
#define SEGLOG_LANE_TYPE_H

#include "python_api.h"

/* Adds the type to the module; -1 with an exception. */
int lane_type_add(PyObject *module);

#endif
