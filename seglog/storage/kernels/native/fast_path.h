/* The fast path: puts of usual messages to queues that have room, without a call into Python.
 *
 * Everything here runs under the GIL. Between the read of the tails and the publication of a record, no
 * Python code runs and the GIL is not released: so puts exclude each other. An append by Python code holds
 * the append lock and sets `is_shut`, so that the fast path does not append meanwhile.
 */
#ifndef SEGLOG_FAST_PATH_H
#define SEGLOG_FAST_PATH_H

#include "python_api.h"

/* A write window: memory of a file that was granted for writing, up to the end of its reserved space.
 *
 * A window of zeros has no memory.
 */
struct write_window {
    Py_buffer memory;   /* the whole file, or with `obj` NULL none */
    PyObject *length;   /* returns the length of the file now; NULL if the file cannot be cut */
    int64_t first, end; /* offset of the first byte of the file, and offset at which writing must stop */
    int64_t checked_ms;
    int unchecked;
    int descriptor; /* descriptor of the file for pwrite; -1 for none */
};

/* Whether bytes [start, end) of the sequence may be written. */
static inline bool window_holds(const struct write_window *window, int64_t start, int64_t end)
{
    return window->memory.obj && window->first <= start && end <= window->end;
}

static inline uint8_t *window_at(const struct write_window *window, int64_t offset)
{
    return (uint8_t *)window->memory.buf + (offset - window->first);
}

/* Writes one record by pwrite, its size field last. The sync after it is faster than after a write through the
 * map: the system must first clean dirty pages of a map, which interrupts every core. Returns false if a
 * write failed; then the size field is not written.
 */
bool window_pwrite_one(const struct write_window *window, int64_t offset, const uint8_t *record, size_t size);

/* Writes consecutive records by pwrite, in the order of their bytes: if the process is killed meanwhile, it
 * leaves whole records and at most one torn record after them. If the size of the first record were written
 * last, it could leave a hole before whole records. Returns false if a write failed; then some records may be
 * written.
 */
bool window_pwrite_run(const struct write_window *window, int64_t offset, const uint8_t *records,
                       size_t size);

/* Counts a write, and checks that the file was not cut: in a new millisecond, after WRITES_A_CHECK writes, or
 * `always`. Other code may run during the check. Returns false if the file was cut or the check failed;
 * clears the error.
 */
bool window_check(struct write_window *window, int64_t now_ms, bool always);

enum { WRITES_A_CHECK = 64 };

/* The same for most writes, which need no check of the file: returns false if window_check() must be called. */
static inline bool window_was_checked(struct write_window *window, int64_t now_ms)
{
    if (now_ms != window->checked_ms || window->unchecked + 1 >= WRITES_A_CHECK)
        return false;
    window->unchecked++;
    return true;
}

/* The ends of a log and its queues, which every append changes and every read uses. Python code that appends
 * holds the append lock and sets `is_shut`.
 */
typedef struct {
    PyObject_HEAD
    struct write_window window;
    long long end_phy_offset, last_phy_offset, last_store_ms, newest_store_ms, keyed_end, wake_allocator_at;
    long long past_map_bytes; /* bytes that appends have written by pwrite */
    char is_shut;
} LogTail;

typedef struct {
    PyObject_HEAD
    struct write_window window; /* its offsets count bytes, not units */
    long long min_offset, max_offset, max_phy_offset;
    long long own_from; /* queue offset from which on messages were appended through this object */
    int64_t look, gathered; /* used by fast_path_gathered.c: the last check of its file, and puts being taken
    */
} QueueTail;

/* The first fields of both types. */
typedef struct {
    PyObject_HEAD
    struct write_window window;
} Tail;

/* The value as a tail; NULL with a TypeError if it is none. Borrowed. */
LogTail *as_log_tail(PyObject *value);
QueueTail *as_queue_tail(PyObject *value);

/* The values of a record that its writer gives; the record gets its place and store time later. */
struct record_values {
    struct span topic, body, properties;
    struct host born_host, store_host;
    int64_t born_timestamp_ms, prepared_transaction_offset;
    int32_t queue_id, sys_flag, flag, reconsume_times;
    bool record_crc;
};

/* The head of a record with the fields that records share; the other fields are written for each record. */
struct record_head {
    uint8_t bytes[SEGLOG_HEADS_48_SIZE];
    size_t size, store_timestamp_ms_at;
    bool record_crc;
};

/* The values that differ from record to record. */
struct record_own {
    struct span topic, body, properties;
    int64_t queue_offset, phy_offset, born_timestamp_ms, store_timestamp_ms;
    int32_t queue_id, flag;
};

/* Whether this code can write records with these shared and own values: format V1, properties that need no
 * change, sizes that fit.
 */
bool record_shares_usual(const struct record_values *values);
bool record_owns_usual(struct span body, struct span properties, bool record_crc);

/* The size of a record without body and properties, but with its CRC property. */
size_t record_bare_size(const struct record_values *values);

/* Fills a head with the values that records share. */
void record_head_make(const struct record_values *values, struct record_head *head);

/* Writes a whole record to memory that readers may see, its size field last: readers see either no record or a
 * whole one. */
void record_write(const struct record_head *shared, const struct record_own *own, size_t size,
                  uint8_t *target);

/* One message of a batch. */
struct message {
    struct span body;
    size_t properties_at, properties_size; /* in `properties` of the batch, which may move */
    size_t record_size;
    int64_t tags_code;
    int32_t flag;
};

/* The messages of one append, if all are usual; a batch of zeros is empty. Bodies are not copied: they stay in
 * their Python objects, which live as long as the call.
 */
struct batch {
    struct message *list;
    uint8_t *properties;
    size_t count, room, properties_size, properties_room;
};

/* Removes all messages; frees the memory if it is large. */
void batch_clear(struct batch *batch);

void batch_free(struct batch *batch);

/* Makes room for `size` more bytes of properties; returns false without memory. */
bool batch_reserve(struct batch *batch, size_t size);

/* Adds a message without properties; returns NULL without memory. The next call may move the message. */
struct message *batch_add(struct batch *batch);

/* Gives the last message properties in stored form. */
bool batch_raw_properties(struct batch *batch, struct span properties);

/* Gives the last message properties in the form of applications, each an object, NULL or None, and the code of
 * its tag. Returns false if the Python twin must handle them.
 */
bool batch_put_properties(struct batch *batch, PyObject *tags, PyObject *keys, PyObject *properties);

/* Reads a body: bytes, or a memoryview of bytes. */
bool batch_take_body(PyObject *value, struct span *body);

/* A topic and the queues that were added. */
typedef struct {
    PyObject_HEAD
    QueueTail **queues; /* by queue id; NULL for a queue that was not added */
    size_t count, name_size;
    uint8_t name[SEGLOG_MAX_TOPIC_BYTES];
} FastTopic;

/* The values that all messages of an append share. */
struct append {
    PyObject *topic; /* borrowed */
    QueueTail *queue;
    struct record_values values; /* without body and properties */
    int64_t store_timestamp_ms;
};

/* The outcome of an append. FALLBACK: Python must do it. NO_WINDOW: Python must do it too, and may afterwards
 * grant the window, or add the queue, that the fast path lacked. FAILED: an exception is set.
 */
enum outcome { DONE, FALLBACK, NO_WINDOW, FAILED };

/* The Python objects that a fast path calls, compares with or returns; its owner has an attribute for each. */
enum known {
    WAITING,
    NOTIFY,
    ENSURE,
    PUT_RESULT,
    BATCH_RESULT,
    NEW_MESSAGE,
    RAW_MESSAGE,
    USUAL_STORE_HOST,
    USUAL_DURABILITY,
    SYNC,
    GATHERED,
    KNOWN
};

typedef struct {
    PyObject_HEAD
    LogTail *log;
    PyObject *topics;      /* FastTopic by name */
    PyObject *last_name;   /* the name that was looked up last; the next put often has the same object */
    FastTopic *last_topic; /* borrowed from `topics` */
    PyObject *clock;       /* NULL for the system's clock */
    size_t max_body_bytes;
    struct batch batch;
    uint8_t *scratch; /* memory in which records are encoded before a pwrite */
    size_t scratch_room;
    int64_t looks;
    PyObject *known[KNOWN]; /* NULL after the garbage collector has cleared them */
    struct host store_host;
    struct record_head head; /* the head of puts */
    size_t bare_size;        /* size of their records without topic, body and properties */
    bool is_closed, record_crc;
    char lacks_window; /* an append was left to Python for lack of a window */
} FastPath;

/* Finds the queue of an append. */
enum outcome fast_path_find(FastPath *path, struct append *append);

/* Does the steps that may run Python code: reads the clock, and checks that no file was cut. Does not change the
 * born time if `is_born`.
 */
enum outcome fast_path_prepare(FastPath *path, struct append *append, bool is_born, bool is_sync);

/* Appends all messages of the batch, or none. No Python code runs from here to the end. SYNC appends are written
 * by pwrite, see window_pwrite_one.
 */
enum outcome fast_path_write(FastPath *path, const struct append *append, bool is_sync);

/* Returns memory for records that are written by pwrite; NULL without memory. */
uint8_t *fast_path_scratch(FastPath *path, size_t size);

/* Adds a queue; -1 with an exception. */
int fast_path_add_queue(FastPath *path, PyObject *topic, int32_t queue_id, QueueTail *queue);

/* Removes all queues. */
void fast_path_forget(FastPath *path);

/* Creates the type of topics; returns false with an exception. */
bool fast_topic_prepare(void);

/* The value as a fast path; NULL without exception if it is none. Borrowed. */
FastPath *as_fast_path(PyObject *value);

enum { UNIT_BYTES = SEGLOG_CQ_UNIT_BYTES };

static inline void unit_write(uint8_t *unit, int64_t phy_offset, size_t size, int64_t tags_code)
{
    write_i64(unit + SEGLOG_CQ_UNIT_PHY_OFFSET_AT, phy_offset);
    write_u32(unit + SEGLOG_CQ_UNIT_SIZE_BYTES_AT, (uint32_t)size);
    write_i64(unit + SEGLOG_CQ_UNIT_TAGS_CODE_AT, tags_code);
}

/* Moves the end of the log, as the last step of an append. `last` is the physical offset of its last record.
 * end_phy_offset is set last: readers without a lock take every record below it. */
static inline void log_advance(LogTail *log, int64_t last, int64_t end, int64_t store_timestamp_ms)
{
    log->last_phy_offset = last;
    log->last_store_ms = store_timestamp_ms;
    if (log->newest_store_ms < store_timestamp_ms)
        log->newest_store_ms = store_timestamp_ms;
    log->end_phy_offset = end;
}

/* Calls of a store that append, as vector calls. They return NULL without an exception if Python must do the
 * call; then they have done nothing.
 */
PyObject *fast_path_put(FastPath *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *fast_path_put_any(FastPath *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *fast_path_append(FastPath *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *fast_path_put_batch(FastPath *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *fast_path_append_batch(FastPath *self, PyObject *const *args, Py_ssize_t count, PyObject *names);

/* Methods that append and wait for nothing; they return None if Python must do it. */
PyObject *fast_path_try_put(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *fast_path_try_put_batch(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *fast_path_try_puts(PyObject *self, PyObject *made);
PyObject *fast_path_try_append(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *fast_path_try_append_batch(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);

/* Intern the names that the calls need; must be called before any other function here. */
bool fast_path_calls_prepare(void);
bool lean_put_prepare(void);

#endif
