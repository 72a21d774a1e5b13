/* Where a log and its queues end: what every append changes and every read looks at.
 *
 * Changed under the GIL only. Whoever appends from Python holds the append lock, and `is_shut` says so.
 */
#ifndef SEGLOG_TIPS_H
#define SEGLOG_TIPS_H

#include "python_api.h"

#include <stdint.h>

#include "window.h"

typedef struct {
    PyObject_HEAD
    long long end_phy_offset, last_phy_offset, last_store_ms, newest_store_ms, keyed_end, nudge_at;
    char is_shut;
    struct window window;
} LogTip;

typedef struct {
    PyObject_HEAD
    long long min_offset, max_offset, max_phy_offset;
    struct window window; /* its offsets are those of bytes */
} QueueTip;

/* Whatever it is, as a tip; NULL with a TypeError if it is none. Borrowed. */
LogTip *as_log_tip(PyObject *value);
QueueTip *as_queue_tip(PyObject *value);

/* Adds both types to the module. */
int tips_add(PyObject *module);

#endif
