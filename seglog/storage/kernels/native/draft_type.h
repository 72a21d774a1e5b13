/* The Python type Draft: a record that still lacks its place and time. */
#ifndef SEGLOG_DRAFT_TYPE_H
#define SEGLOG_DRAFT_TYPE_H

#include "python_api.h"

/* Adds the type to the module; -1 with an exception. */
int draft_type_add(PyObject *module);

#endif
