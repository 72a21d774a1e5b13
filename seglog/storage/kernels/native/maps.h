/* The maps of a rolling sequence of files, by the place of their first byte: what Python mapped, for
 * kernels that look a place up. Touched under the GIL only.
 */
#ifndef SEGLOG_MAPS_H
#define SEGLOG_MAPS_H

#include "python_api.h"

#include <stdbool.h>
#include <stdint.h>

/* One file. `view` is NULL while it is not mapped; all else but `is_odd` counts only while it is. */
struct file_map {
    PyObject *view;       /* read-only; keeps the memory alive */
    PyObject *length_now; /* asks the system how long the file is; NULL if nobody can cut it */
    const uint8_t *memory;
    Py_buffer buffer;
    Py_buffer states; /* one byte for each block in front of `guarded_bytes` */
    int64_t guarded_bytes;
    int64_t checked_ms; /* when its length was last looked at */
    bool is_odd;        /* holds something that only Python reads rightly */
};

typedef struct {
    PyObject_HEAD
    int64_t file_bytes, first_number;
    size_t count;
    struct file_map *files;
} Maps;

/* The file that holds a place, NULL unless it is mapped and not odd. Valid until anything else may run. */
struct file_map *maps_find(const Maps *maps, int64_t offset);

/* Whether all blocks of [start, end), places in the file, are known to be as they were written. */
bool file_is_sound(const struct file_map *file, int64_t start, int64_t end);

/* Whether the file is as long as its map; asks the system, and other threads may run. -1 with an exception. */
int file_is_whole(const Maps *maps, struct file_map *file, int64_t now_ms);

/* Whatever it is, as maps; NULL with a TypeError if it is none. Borrowed. */
Maps *as_maps(PyObject *value);

/* Adds the type to the module. */
int maps_add(PyObject *module);

#endif
