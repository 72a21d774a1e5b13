/* The maps of a rolling sequence of files, by the place of their first byte: what Python mapped, for
 * kernels that look a place up. Touched under the GIL only.
 */
#ifndef SEGLOG_MAPS_H
#define SEGLOG_MAPS_H

#include "python_api.h"

#include <stdbool.h>
#include <stdint.h>

/* One file. `view` is NULL while it is not mapped, and what follows up to `checked_ms` means nothing then. */
struct file_map {
    PyObject *view;       /* read-only; keeps the memory alive */
    PyObject *length_now; /* asks the system how long the file is; NULL if nobody can cut it */
    const uint8_t *memory;
    Py_buffer buffer;
    int64_t checked_ms; /* when its length was last looked at */
    Py_buffer states;   /* what is known of each of its blocks below `guarded_end`; none without `obj` */
    bool is_odd;        /* holds something that only Python reads rightly */
};

typedef struct {
    PyObject_HEAD
    int64_t file_bytes, first_number;
    long long guarded_end; /* blocks that begin before this place are served only if they are known to be good */
    size_t count;
    struct file_map *files;
} Maps;

/* The file that holds a place, NULL unless it is mapped and not odd. Valid until anything else may run. */
struct file_map *maps_find(const Maps *maps, int64_t offset);

/* Whether [start, end), a stretch of the file, is known to be as it was written. */
bool maps_are_sound(const Maps *maps, const struct file_map *file, int64_t start, int64_t end);

/* Whether the file is as long as its map; asks the system, and other threads may run. -1 with an exception. */
int file_is_whole(const Maps *maps, struct file_map *file, int64_t now_ms);

/* Whatever it is, as maps; NULL with a TypeError if it is none. Borrowed. */
Maps *as_maps(PyObject *value);

/* Adds the type to the module. */
int maps_add(PyObject *module);

#endif
