/* A stored message in C. To Python it is a `Message` (seglog/storage/format/record/message.py): it has the class
 * and the methods, and is equal to a message that Python code created. It holds a copy of the record's
 * fields, so it outlives the map; a Python object for a field is created on demand. It refers to values only,
 * which refer to nothing else, so the garbage collector need not track it.
 */
#ifndef SEGLOG_STORED_MESSAGE_H
#define SEGLOG_STORED_MESSAGE_H

#include "python_api.h"
#include "record.h"

typedef struct StoredMessage StoredMessage;

/* Sets the Python class of messages, always the same, and copies its attributes. Returns false with an
 * exception. */
bool stored_message_bind(PyTypeObject *message_type);

/* Returns the message of a record, still without topic and hosts; `added` are more properties in stored form.
 * Runs no Python code. NULL with an exception.
 */
StoredMessage *stored_message_new(const struct record *record, size_t hosts_end, struct span added);

/* Sets topic and hosts, which several messages share; takes over the references. Returns false if one is NULL. */
bool stored_message_share(StoredMessage *message, PyObject *topic, PyObject *born_host, PyObject *store_host);

/* Replaces the stored properties, which are bytes, of a message that no other code has seen yet. Returns false
 * for an object of another type.
 */
bool stored_message_set_properties(PyObject *message, PyObject *properties);

#endif
