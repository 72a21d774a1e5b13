/* The fast path: puts of usual messages to queues that have room, without a call into Python.
 *
 * Everything here runs under the GIL. Between looking at the tails and publishing, nothing runs Python code
 * or lets go of the GIL: so puts exclude each other, and what appends from Python shuts the fast path
 * meanwhile.
 */
#ifndef SEGLOG_FAST_PATH_H
#define SEGLOG_FAST_PATH_H

#include "python_api.h"

/* A write window: memory of a file that was granted for writing, up to where there is space for sure.
 *
 * All zero is one without memory.
 */
struct write_window {
    Py_buffer memory;   /* the whole file, or with `obj` NULL none */
    PyObject *length;   /* returns how long the file is now; NULL where it cannot be cut */
    int64_t first, end; /* offsets of the first byte and of the last one that may be written */
    int64_t checked_ms;
    int unchecked;
    int descriptor; /* of the file, to be written to by pwrite; -1 for none */
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

/* Writes one record by pwrite, its size last. The sync after it is quicker than after a write through the
 * map, whose pages the system must clean first, which interrupts every core. False if it failed; then the
 * size is not written.
 */
bool window_pwrite_one(const struct write_window *window, int64_t offset, const uint8_t *record, size_t size);

/* Writes records that follow each other by pwrite, in the order of their bytes: a process that is killed
 * meanwhile leaves whole records and at most one torn one after them. With the size of the first one last it
 * would leave a hole before whole records. False if it failed; then some of them may be written.
 */
bool window_pwrite_run(const struct write_window *window, int64_t offset, const uint8_t *records,
                       size_t size);

/* Counts a write, and checks at a new millisecond, after some writes, or `always`, whether the file was cut;
 * other code may run meanwhile. False if it was cut, or cannot be asked; the error is cleared.
 */
bool window_check(struct write_window *window, int64_t now_ms, bool always);

enum { WRITES_A_CHECK = 64 };

/* The same for most writes, which need no look at the file: false where window_check() must be asked. */
static inline bool window_was_checked(struct write_window *window, int64_t now_ms)
{
    if (now_ms != window->checked_ms || window->unchecked + 1 >= WRITES_A_CHECK)
        return false;
    window->unchecked++;
    return true;
}

/* Where a log and its queues end: what every append changes and every read looks at. Who appends from Python
 * holds the append lock, and `is_shut` says so.
 */
typedef struct {
    PyObject_HEAD
    struct write_window window;
    long long end_phy_offset, last_phy_offset, last_store_ms, newest_store_ms, keyed_end, wake_allocator_at;
    char is_shut;
} LogTail;

typedef struct {
    PyObject_HEAD
    struct write_window window; /* its offsets are those of bytes */
    long long min_offset, max_offset, max_phy_offset;
    long long own_from; /* messages from here on were appended through this object */
    int64_t look, gathered; /* of fast_path_gathered.c: when its file was looked at, and puts being taken */
} QueueTail;

/* What both begin with. */
typedef struct {
    PyObject_HEAD
    struct write_window window;
} Tail;

/* The value as a tail; NULL with a TypeError if it is none. Borrowed. */
LogTail *as_log_tail(PyObject *value);
QueueTail *as_queue_tail(PyObject *value);

/* What a writer says of a record; its place and store time come later. */
struct record_values {
    struct span topic, body, properties;
    struct host born_host, store_host;
    int64_t born_timestamp_ms, prepared_transaction_offset;
    int32_t queue_id, sys_flag, flag, reconsume_times;
    bool record_crc;
};

/* The head of a record as far as records share it, to be filled in for each. */
struct record_head {
    uint8_t bytes[SEGLOG_HEADS_48_SIZE];
    size_t size, store_timestamp_ms_at;
    bool record_crc;
};

/* What is a record's own. */
struct record_own {
    struct span topic, body, properties;
    int64_t queue_offset, phy_offset, born_timestamp_ms, store_timestamp_ms;
    int32_t queue_id, flag;
};

/* Whether records are made here of what messages share and of what is their own: V1, properties that need no
 * change, sizes that fit.
 */
bool record_shares_usual(const struct record_values *values);
bool record_owns_usual(struct span body, struct span properties, bool record_crc);

/* The size of a record without body and properties of its own, its CRC property included. */
size_t record_bare_size(const struct record_values *values);

/* Takes over what records share. */
void record_head_make(const struct record_values *values, struct record_head *head);

/* Writes a whole record of that size to where readers may look, its size last: they see either none or a
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

/* The messages of one append, as far as they are usual ones; all zero is an empty one. Bodies lie where their
 * objects have them, which live as long as the call.
 */
struct batch {
    struct message *list;
    uint8_t *properties;
    size_t count, room, properties_size, properties_room;
};

/* Removes all messages, and frees much memory. */
void batch_clear(struct batch *batch);

void batch_free(struct batch *batch);

/* Makes room for so many more bytes of properties; false without memory. */
bool batch_reserve(struct batch *batch, size_t size);

/* Another message without properties; NULL without memory. It may move with the next. */
struct message *batch_add(struct batch *batch);

/* Gives the last message properties as they are stored. */
bool batch_raw_properties(struct batch *batch, struct span properties);

/* Gives the last message properties as applications have them, each an object, NULL or None, and the code
 * of its tag. False for those that the twin must look at.
 */
bool batch_put_properties(struct batch *batch, PyObject *tags, PyObject *keys, PyObject *properties);

/* bytes, or a memoryview of bytes. */
bool batch_take_body(PyObject *value, struct span *body);

/* A topic and its queues, as far as they were added. */
typedef struct {
    PyObject_HEAD
    QueueTail **queues; /* by queue id; NULL for one that is not here */
    size_t count, name_size;
    uint8_t name[SEGLOG_MAX_TOPIC_BYTES];
} FastTopic;

/* What all messages of an append share. */
struct append {
    PyObject *topic; /* borrowed */
    QueueTail *queue;
    struct record_values values; /* without body and properties */
    int64_t store_timestamp_ms;
};

/* Why an append was not made. FALLBACK: Python must do it. NO_WINDOW: it must too, and a window, or anything
 * else that the fast path lacked, may be there afterwards.
 */
enum outcome { DONE, FALLBACK, NO_WINDOW, FAILED };

/* What a fast path calls, compares with or gives out; its owner has an attribute for each. */
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
    PyObject *last_name;   /* what was found last, and the object that named it */
    FastTopic *last_topic; /* borrowed from `topics` */
    PyObject *clock;       /* NULL for the system's */
    size_t max_body_bytes;
    struct batch batch;
    uint8_t *scratch; /* where records are made that are written by pwrite */
    size_t scratch_room;
    int64_t looks;
    PyObject *known[KNOWN]; /* NULL once the garbage collector took them */
    struct host store_host;
    struct record_head head; /* of puts */
    size_t bare_size;        /* of their records without topic, body and properties */
    bool is_closed, record_crc;
    char lacks_window; /* an append was left to Python that a window would have spared it */
} FastPath;

/* Finds the queue. */
enum outcome fast_path_find(FastPath *path, struct append *append);

/* Does all that may run code of others: stamps the time, and makes sure that no file was cut. The born
 * time is left alone if `is_born`.
 */
enum outcome fast_path_prepare(FastPath *path, struct append *append, bool is_born, bool is_sync);

/* Appends the messages of the batch, or nothing. From here to the end nothing runs code of others. What is to
 * be on the disk at once is written by pwrite, see window_pwrite_one.
 */
enum outcome fast_path_write(FastPath *path, const struct append *append, bool is_sync);

/* Memory for records that are written by pwrite; NULL without. */
uint8_t *fast_path_scratch(FastPath *path, size_t size);

/* Adds a queue; -1 with an exception. */
int fast_path_add_queue(FastPath *path, PyObject *topic, int32_t queue_id, QueueTail *queue);

/* Removes all queues. */
void fast_path_forget(FastPath *path);

/* Makes the type of topics; false with an exception. */
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

/* Says that the log ends later, after all else was said: `last` is where its last record begins. */
static inline void log_advance(LogTail *log, int64_t last, int64_t end, int64_t store_timestamp_ms)
{
    log->last_phy_offset = last;
    log->last_store_ms = store_timestamp_ms;
    if (log->newest_store_ms < store_timestamp_ms)
        log->newest_store_ms = store_timestamp_ms;
    log->end_phy_offset = end;
}

/* Calls of a store that append, as vector calls. NULL without exception where Python must make the call, and
 * nothing was done.
 */
PyObject *fast_path_put(FastPath *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *fast_path_put_any(FastPath *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *fast_path_append(FastPath *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *fast_path_put_batch(FastPath *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *fast_path_append_batch(FastPath *self, PyObject *const *args, Py_ssize_t count, PyObject *names);

/* Methods that append and wait for nothing; None where Python must do it. */
PyObject *fast_path_try_put(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *fast_path_try_put_batch(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *fast_path_try_puts(PyObject *self, PyObject *made);
PyObject *fast_path_try_append(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *fast_path_try_append_batch(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);

/* Intern what they need; to be called before anything else. */
bool fast_path_calls_prepare(void);
bool lean_put_prepare(void);

#endif
