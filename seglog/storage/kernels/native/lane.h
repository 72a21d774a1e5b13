/* The lane: puts of usual messages to queues that have room, without a call into Python.
 *
 * Between looking at the tips and publishing, nothing here runs Python code or lets go of the GIL: so puts
 * exclude each other, and whoever appends from Python shuts the lane meanwhile.
 */
#ifndef SEGLOG_LANE_H
#define SEGLOG_LANE_H

#include "python_api.h"

#include <stdbool.h>
#include <stdint.h>

#include "batch.h"
#include "encode.h"
#include "tips.h"

/* A topic and its queues, as far as they were added. */
typedef struct {
    PyObject_HEAD
    QueueTip **queues; /* by queue id; NULL for one that is not here */
    size_t count, name_size;
    uint8_t name[SEGLOG_MAX_TOPIC_BYTES];
} LaneTopic;

/* What all messages of an append share. */
struct append {
    PyObject *topic; /* borrowed */
    QueueTip *queue;
    struct draft_values values; /* without body and properties */
    int64_t store_timestamp_ms;
};

/* Why an append was not made. LACKING: a window, or anything else that may be there after one by Python. */
enum outcome { DONE, ODD, LACKING, FAILED };

struct lane {
    LogTip *log;
    PyObject *topics; /* LaneTopic by name */
    PyObject *last_name; /* what was found last, and the object that named it */
    LaneTopic *last_topic; /* borrowed from `topics` */
    PyObject *clock; /* NULL for the system's */
    size_t max_body_bytes;
    bool is_closed;
    struct batch batch;
    uint8_t *scratch; /* where records are made that are written past the map */
    size_t scratch_room;
};

/* Finds the queue. */
enum outcome lane_find(struct lane *lane, struct append *append);

/* Does all that may run code of others: stamps the time, and makes sure that nobody cut the files. The born
 * time is left alone if `is_born`.
 */
enum outcome lane_prepare(struct lane *lane, struct append *append, bool is_born, bool is_sync);

/* Appends the messages of the lane's batch, or nothing. From here to the end nothing runs code of others. What
 * is to be on the disk at once is written past the map, see window_write_one.
 */
enum outcome lane_append(struct lane *lane, const struct append *append, bool is_sync);

/* Adds a queue; -1 with an exception. */
int lane_add(struct lane *lane, PyObject *topic, int32_t queue_id, QueueTip *queue);

/* Forgets all queues. */
void lane_forget(struct lane *lane);

/* Adds the type of topics to the module. */
int lane_topic_add(PyObject *module);

#endif
