/* A window: memory of a file that is lent for writing, up to where there is space for sure.
 *
 * All zero is one without memory. Everything here runs under the GIL; it may let others run meanwhile.
 */
#ifndef SEGLOG_WINDOW_H
#define SEGLOG_WINDOW_H

#include "python_api.h"

#include <stdbool.h>
#include <stdint.h>

struct window {
    Py_buffer memory;   /* the whole file, or with `obj` NULL none */
    PyObject *length;   /* answers how long the file is now; NULL where nobody can cut it */
    int64_t first, end; /* offsets of the first byte and of the last one that may be written */
    int64_t checked_ms;
    int unchecked;
    int descriptor; /* of the file, to be written to past its map; -1 for none */
};

/* Parses the arguments (memory, first, end, length, descriptor) of the method `lend` and takes them in. */
PyObject *window_lend(struct window *window, PyObject *args);

/* Gives the memory back. */
void window_take_back(struct window *window);

/* Whether bytes [start, end) of the sequence may be written. */
static inline bool window_holds(const struct window *window, int64_t start, int64_t end)
{
    return window->memory.obj && window->first <= start && end <= window->end;
}

static inline uint8_t *window_at(const struct window *window, int64_t offset)
{
    return (uint8_t *)window->memory.buf + (offset - window->first);
}

/* Writes one record past the map, to the page cache: what is to be on the disk at once is there sooner, as no
 * map of it must be cleaned first, which interrupts every core. Its size goes last. False if it failed; then
 * the size is not there.
 */
bool window_write_one(const struct window *window, int64_t offset, const uint8_t *record, size_t size);

/* Writes records that follow each other past the map, in the order of their bytes: a process that is killed
 * meanwhile leaves whole records and at most one torn one behind them. With the size of the first one last it
 * would leave a hole before whole records. False if it failed; then some of them may be there.
 */
bool window_write_run(const struct window *window, int64_t offset, const uint8_t *records, size_t size);

/* Counts a write, and looks now and then whether somebody cut the file: at a new millisecond, after some
 * writes, or `always`. False if it was cut, or cannot be asked; the error is cleared.
 */
bool window_check(struct window *window, int64_t now_ms, bool always);

#endif
