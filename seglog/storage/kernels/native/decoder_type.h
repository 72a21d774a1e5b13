/* Messages out of records; see Decoder in _native.pyi. */
#ifndef SEGLOG_DECODER_TYPE_H
#define SEGLOG_DECODER_TYPE_H

#include "python_api.h"

/* Adds the type to the module. */
int decoder_type_add(PyObject *module);

#endif
