/* MessageStore.get for plain reads; see Reads in _native.pyi. */
#ifndef SEGLOG_READS_TYPE_H
#define SEGLOG_READS_TYPE_H

#include "python_api.h"

/* Adds the type to the module. */
int reads_type_add(PyObject *module);

#endif
