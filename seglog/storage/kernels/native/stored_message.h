/* A stored message in C. To Python it is a `Message` (seglog/storage/format/record/message.py): of its class, with
 * its methods, equal to one that Python made. It holds a copy of what the record says, so it outlives the map; a
 * Python object for a part of it is made when that part is asked for. All that it holds are values, which refer to
 * nothing else, so the garbage collector does not look at it.
 */
#ifndef SEGLOG_STORED_MESSAGE_H
#define SEGLOG_STORED_MESSAGE_H

#include "python_api.h"
#include "record.h"

typedef struct StoredMessage StoredMessage;

/* Has messages be of a Python class, always the same, and takes over what that has. False with an exception. */
bool stored_message_bind(PyTypeObject *message_type);

/* A message of a record, still without topic and hosts, with more properties in stored form behind its own. Runs
 * no Python code. NULL with an exception.
 */
StoredMessage *stored_message_new(const struct record *record, size_t hosts_end, struct span added);

/* Gives it what several messages have in common; takes the references. False if one of them is NULL. */
bool stored_message_share(StoredMessage *message, PyObject *topic, PyObject *born_host, PyObject *store_host);

/* Gives a message that nobody else has yet other stored properties, which are bytes. False if it is not of this
 * type.
 */
bool stored_message_set_properties(PyObject *message, PyObject *properties);

#endif
