/* Files opened below a folder that no name on the way leads out of. */
#ifndef SEGLOG_BENEATH_H
#define SEGLOG_BENEATH_H

#include "python_api.h"

/* open_beneath(folder, path, flags) -> descriptor */
PyObject *py_open_beneath(PyObject *module, PyObject *args);

/* open_plain(folder, path, flags) -> descriptor, or -1 */
PyObject *py_open_plain(PyObject *module, PyObject *args);

/* mode_beneath(folder, path) -> mode, 0 or 1 */
PyObject *py_mode_beneath(PyObject *module, PyObject *args);

#endif
