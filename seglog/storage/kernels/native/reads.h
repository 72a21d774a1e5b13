/* Types for plain reads: maps of files, the tags of filters, and the results of reads. Used under the GIL only.
 */
#ifndef SEGLOG_READS_H
#define SEGLOG_READS_H

#include "log_bytes.h"

/* One file. `memory` is NULL while the file is not mapped; then the fields up to `checked_ms` are not valid. */
struct file_map {
    PyObject *memory;     /* the whole file, created by memory_new */
    PyObject *length_now; /* returns the length of the file now; NULL if it cannot be cut */
    const uint8_t *bytes;
    int64_t checked_ms; /* time of the last check of its length */
    Py_buffer states;   /* the state of each of its blocks below `guarded_end`; none if `obj` is NULL */
    bool is_refused;    /* has holes or mended records, which only Python reads rightly */
};

/* The maps of a sequence of files, by the offset of their first byte: files that Python has mapped, for kernels
 * that look up an offset.
 */
typedef struct {
    PyObject_HEAD
    int64_t file_bytes, first_number;
    long long
        guarded_end; /* blocks that begin before this offset are served only after a check found them good */
    size_t count;
    struct file_map *files;
} Maps;

/* Returns the file that holds an offset, NULL unless it is mapped and not refused. Valid until other code may run.
 */
struct file_map *maps_find(const Maps *maps, int64_t offset);

/* Whether [start, end), a stretch of the file, is known to be undamaged. */
bool maps_are_sound(const Maps *maps, const struct file_map *file, int64_t start, int64_t end);

/* Whether the file is as long as its map; checks it, during which other threads may run. -1 with an exception.
 */
int file_is_whole(const Maps *maps, struct file_map *file, int64_t now_ms);

/* Returns the value as maps, borrowed; NULL with a TypeError for another type. */
Maps *as_maps(PyObject *value);

/* The tags of a TagFilter: codes for queue units, names for records. */
typedef struct TagSet TagSet;

/* Whether a unit with this code may lead to a wanted record. */
bool tag_set_has_code(const TagSet *tags, int64_t tags_code);

/* Whether the codes decide alone; otherwise the tag itself must be compared. */
bool tag_set_is_loose(const TagSet *tags);

/* Whether the tag in these properties is one of the tags. */
bool tag_set_has_tag(const TagSet *tags, struct span properties);

/* Returns the value as tags, borrowed; NULL without an exception for another type. */
const TagSet *as_tag_set(PyObject *value);

/* Neighbouring records: a stretch of `memory`, a held reference to an object of memory_new or from Python. */
struct record_run {
    PyObject *memory;
    int64_t start, size_bytes;
};

/* Records and their runs; the arrays are allocated by PyMem, NULL for none. */
struct read_records {
    int32_t *sizes;
    size_t count;
    struct record_run *runs;
    size_t run_count;
};

struct read_place {
    PyObject *status;
    long long next_offset, min_offset, max_offset;
};

/* Returns a new object of `type`, ReadResult or a subclass. It takes over the records, even if it fails. */
PyObject *read_result_new(PyTypeObject *type, const struct read_place *place, struct read_records *records);

/* Whether the type is ReadResult or a subclass. */
bool is_read_result_type(PyObject *type);

/* Returns the records of a result, valid as long as it lives; NULL for an object of another type. */
const struct read_records *records_of(PyObject *result);

/* Returns a part of the memory of a run. */
PyObject *part_of(PyObject *memory, int64_t start, int64_t size_bytes);

/* The units and limits of a pull; `wanted` is NULL for all messages. */
struct pull_question {
    const uint8_t *units;
    size_t unit_count;
    size_t max_count; /* 1 or more */
    int64_t max_bytes;
    int64_t end_phy_offset;
    const TagSet *wanted;
    int64_t living_from, living_to, own_from; /* no record of [living_from, living_to), or from own_from on,
    is
                                                 a tombstone; indexes of units */
};

enum pull_end {
    PULL_DONE,
    PULL_FALLBACK,  /* the Python method must do the read */
    PULL_UNCHECKED, /* a file's length must be checked first: it was not at `now_ms` */
    PULL_NO_MEMORY,
};

struct pull {
    struct read_records records;
    size_t examined; /* units */
    struct file_map *unchecked;
};

/* Reads the records of queue units as `read_queue` in seglog/storage/reads/get.py does: the plain case, in which
 * every unit leads to an undamaged message in the log. No other code runs meanwhile. The caller gets the
 * records only with PULL_DONE.
 */
enum pull_end pull_units(const struct pull_question *question, const Maps *log, int64_t now_ms,
                         struct pull *pull);

/* Returns the size of the record at a physical offset of a file whose length was checked; 0 unless it is a plain
 * record that ends before `end_phy_offset`.
 */
int64_t plain_record_bytes(const Maps *log, const struct file_map *file, int64_t phy_offset,
                           int64_t end_phy_offset);

/* Whether the value is of the type Reads. */
bool is_reads(PyObject *value);

/* Does a plain read with the arguments of a store's get; NULL without an exception if Python must do it. */
PyObject *reads_get(PyObject *reads, PyObject *const *given, Py_ssize_t count, PyObject *keywords);

#endif
