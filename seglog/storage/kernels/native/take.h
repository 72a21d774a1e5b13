/* Takes values out of Python objects of the usual types; of all others, and wrong ones, the twin knows more.
 *
 * None of these runs Python code, and false may leave an error behind.
 */
#ifndef SEGLOG_TAKE_H
#define SEGLOG_TAKE_H

#include "python_api.h"

#include <stdbool.h>

#include "bytes.h"
#include "encode.h"

/* Interns the names of attributes; to be called before anything else. */
bool take_prepare(void);

/* The bytes belong to the object. */
bool take_bytes(PyObject *value, struct span *bytes);

/* The UTF-8 of a str, which belongs to it. */
bool take_text(PyObject *value, struct span *text);

bool take_i64(PyObject *value, int64_t *number);

bool take_i32(PyObject *value, int32_t *number);

bool take_host(PyObject *value, struct host *host);

#endif
