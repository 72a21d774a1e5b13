/* The messages of one append, as far as they are usual ones.
 *
 * Nothing here runs Python code: bodies lie where their objects have them, which live as long as the call.
 */
#ifndef SEGLOG_BATCH_H
#define SEGLOG_BATCH_H

#include "python_api.h"

#include <stdbool.h>
#include <stdint.h>

#include "bytes.h"

struct message {
    struct span body;
    size_t properties_at, properties_size; /* in `properties` of the batch, which may move */
    size_t record_size;
    int64_t tags_code;
    int32_t flag;
};

/* All zero is an empty one. */
struct batch {
    struct message *list;
    uint8_t *properties;
    size_t count, room, properties_size, properties_room;
};

/* Forgets all messages, and much memory. */
void batch_clear(struct batch *batch);

void batch_free(struct batch *batch);

/* Another message without properties; NULL without memory. It may move with the next. */
struct message *batch_add(struct batch *batch);

/* What the last message has as properties. */
struct span batch_properties(const struct batch *batch, const struct message *message);

/* Gives the last message properties as they are stored. */
bool batch_raw_properties(struct batch *batch, struct span properties);

/* Gives the last message properties as applications have them, each an object, NULL or None, and the code
 * of its tag. False for those that the twin must look at.
 */
bool batch_put_properties(struct batch *batch, PyObject *tags, PyObject *keys, PyObject *properties);

/* bytes, or a memoryview of bytes. */
bool batch_take_body(PyObject *value, struct span *body);

#endif
