/* What serves plain reads: maps of files, the tags that a reader wants, and what a read found. Touched under
 * the GIL only.
 */
#ifndef SEGLOG_READS_H
#define SEGLOG_READS_H

#include "log_bytes.h"

/* One file. `memory` is NULL while it is not mapped, and what follows up to `checked_ms` means nothing then. */
struct file_map {
    PyObject *memory;     /* all of the file, made by memory_new */
    PyObject *length_now; /* asks the system how long the file is; NULL if it cannot be cut */
    const uint8_t *bytes;
    int64_t checked_ms; /* when its length was last looked at */
    Py_buffer states;   /* what is known of each of its blocks below `guarded_end`; none without `obj` */
    bool is_refused;    /* holds something that only Python reads rightly */
};

/* The maps of a rolling sequence of files, by the place of their first byte: what Python mapped, for kernels
 * that look a place up.
 */
typedef struct {
    PyObject_HEAD
    int64_t file_bytes, first_number;
    long long
        guarded_end; /* blocks that begin before this place are served only if they are known to be good */
    size_t count;
    struct file_map *files;
} Maps;

/* The file that holds a place, NULL unless it is mapped and not refused. Valid until anything else may run.
 */
struct file_map *maps_find(const Maps *maps, int64_t offset);

/* Whether [start, end), a stretch of the file, is known to be as it was written. */
bool maps_are_sound(const Maps *maps, const struct file_map *file, int64_t start, int64_t end);

/* Whether the file is as long as its map; asks the system, and other threads may run. -1 with an exception.
 */
int file_is_whole(const Maps *maps, struct file_map *file, int64_t now_ms);

/* The value as maps; NULL with a TypeError if it is none. Borrowed. */
Maps *as_maps(PyObject *value);

/* The tags that a reader wants, as TagFilter has them: codes for queue units, names for records. */
typedef struct TagSet TagSet;

/* Whether a unit with this code may lead to a wanted record. */
bool tag_set_has_code(const TagSet *tags, int64_t tags_code);

/* Whether the codes say all; otherwise the tag itself has to be looked at. */
bool tag_set_is_loose(const TagSet *tags);

/* Whether one of the tags is that of these properties. */
bool tag_set_has_tag(const TagSet *tags, struct span properties);

/* The value as tags; NULL without exception if it is none. Borrowed. */
const TagSet *as_tag_set(PyObject *value);

/* Records that are neighbours: a stretch of `memory`, which is held; made by memory_new, or what Python gave. */
struct record_run {
    PyObject *memory;
    int64_t start, size_bytes;
};

/* Records and how they lie in runs; the arrays are PyMem's, NULL for none. */
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

/* Returns a new object of `type`, ReadResult or one made of it. It takes the records, also where it fails. */
PyObject *read_result_new(PyTypeObject *type, const struct read_place *place, struct read_records *records);

/* Whether it is ReadResult or a type made of it. */
bool is_read_result_type(PyObject *type);

/* What a result holds, as long as it lives; NULL unless it is a ReadResult. */
const struct read_records *records_of(PyObject *result);

/* Returns a part of the memory of a run. */
PyObject *part_of(PyObject *memory, int64_t start, int64_t size_bytes);

/* What is asked of a queue; `wanted` is NULL for all messages. */
struct pull_question {
    const uint8_t *units;
    size_t unit_count;
    size_t max_count; /* 1 or more */
    int64_t max_bytes;
    int64_t end_phy_offset;
    const TagSet *wanted;
    int64_t living_from, living_to, own_from; /* no record of these units, or from there on, is a tombstone */
};

enum pull_end {
    PULL_DONE,
    PULL_FALLBACK,  /* only Python knows */
    PULL_UNCHECKED, /* a file's length was not looked at since `now_ms` */
    PULL_NO_MEMORY,
};

struct pull {
    struct read_records records;
    size_t examined; /* units */
    struct file_map *unchecked;
};

/* Goes from queue units to records as `read_queue` in seglog/storage/reads/get.py does: the plain case, in
 * which every unit leads to a message that lies in the log as it was written. Nothing else runs meanwhile.
 * The records are the caller's only if it ends with PULL_DONE.
 */
enum pull_end pull_units(const struct pull_question *question, const Maps *log, int64_t now_ms,
                         struct pull *pull);

/* Bytes of the record that starts at a place of a file whose length was checked; 0 unless it is a plain one
 * that ends before `end_phy_offset`.
 */
int64_t plain_record_bytes(const Maps *log, const struct file_map *file, int64_t phy_offset,
                           int64_t end_phy_offset);

/* Whether the value is of the type Reads. */
bool is_reads(PyObject *value);

/* A plain read: takes the arguments of a store's get. NULL without exception for one that is Python's. */
PyObject *reads_get(PyObject *reads, PyObject *const *given, Py_ssize_t count, PyObject *keywords);

#endif
