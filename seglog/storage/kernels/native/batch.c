#include "batch.h"

#include <string.h>

#include "../layout.h"
#include "java_hash.h"
#include "properties.h"
#include "take.h"

enum { FIRST_ROOM = 64, KEPT_ROOM = 4096, FIRST_BYTES = 4096, KEPT_BYTES = 1 << 20 };

void batch_free(struct batch *batch)
{
    PyMem_Free(batch->list);
    PyMem_Free(batch->properties);
    memset(batch, 0, sizeof *batch);
}

void batch_clear(struct batch *batch)
{
    if (batch->room > KEPT_ROOM || batch->properties_room > KEPT_BYTES)
        batch_free(batch);
    batch->count = batch->properties_size = 0;
}

struct message *batch_add(struct batch *batch)
{
    if (batch->count == batch->room) {
        size_t room = batch->room ? 2 * batch->room : FIRST_ROOM;
        struct message *list = PyMem_Realloc(batch->list, room * sizeof *list);
        if (!list)
            return NULL;
        batch->list = list;
        batch->room = room;
    }
    struct message *message = &batch->list[batch->count++];
    memset(message, 0, sizeof *message);
    message->properties_at = batch->properties_size;
    return message;
}

struct span batch_properties(const struct batch *batch, const struct message *message)
{
    if (!message->properties_size)
        return span_of(NULL, 0);
    return span_of(batch->properties + message->properties_at, message->properties_size);
}

static bool reserve(struct batch *batch, size_t size)
{
    size_t needed = batch->properties_size + size;
    if (needed <= batch->properties_room)
        return true;
    size_t room = batch->properties_room ? batch->properties_room : FIRST_BYTES;
    while (room < needed)
        room *= 2;
    uint8_t *properties = PyMem_Realloc(batch->properties, room);
    if (!properties)
        return false;
    batch->properties = properties;
    batch->properties_room = room;
    return true;
}

static void add_bytes(struct batch *batch, struct span bytes)
{
    memcpy(batch->properties + batch->properties_size, bytes.at, bytes.size);
    batch->properties_size += bytes.size;
}

/* Lets the last message have everything that was added since. */
static void take_in(struct batch *batch)
{
    struct message *message = &batch->list[batch->count - 1];
    message->properties_size = batch->properties_size - message->properties_at;
}

bool batch_raw_properties(struct batch *batch, struct span properties)
{
    if (properties.size > SEGLOG_MAX_PROPERTIES_BYTES || !reserve(batch, properties.size))
        return false;
    if (properties.size)
        add_bytes(batch, properties);
    take_in(batch);
    return true;
}

static bool has_separator(struct span text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.at[i] == SEGLOG_NAME_END || text.at[i] == SEGLOG_ENTRY_END)
            return true;
    return false;
}

static bool add_entry(struct batch *batch, struct span name, struct span value)
{
    if (name.size == 0 || name.size + value.size > SEGLOG_MAX_PROPERTIES_BYTES || has_separator(name) ||
        has_separator(value) || !reserve(batch, name.size + value.size + 2))
        return false;
    add_bytes(batch, name);
    batch->properties[batch->properties_size++] = SEGLOG_NAME_END;
    add_bytes(batch, value);
    batch->properties[batch->properties_size++] = SEGLOG_ENTRY_END;
    return true;
}

static const struct span tags_name = {(const uint8_t *)SEGLOG_TAGS, sizeof SEGLOG_TAGS - 1};
static const struct span keys_name = {(const uint8_t *)SEGLOG_KEYS, sizeof SEGLOG_KEYS - 1};

static bool are_equal(struct span one, struct span other)
{
    return one.size == other.size && memcmp(one.at, other.at, one.size) == 0;
}

static bool add_entries(struct batch *batch, PyObject *properties)
{
    static const struct span inner = {(const uint8_t *)SEGLOG_INNER_NAMES, sizeof SEGLOG_INNER_NAMES - 1};
    PyObject *key, *item;
    Py_ssize_t at = 0;
    size_t start = batch->properties_size;
    if (!PyDict_CheckExact(properties))
        return false;
    while (PyDict_Next(properties, &at, &key, &item)) {
        struct span name, value;
        if (!take_text(key, &name) || !take_text(item, &value) || are_equal(name, tags_name) ||
            are_equal(name, keys_name) || !add_entry(batch, name, value))
            return false;
    }
    return batch->properties_size == start ||
           !properties_hold(span_of(batch->properties + start, batch->properties_size - start), inner);
}

static bool is_given(PyObject *value)
{
    return value && value != Py_None;
}

bool batch_put_properties(struct batch *batch, PyObject *tags, PyObject *keys, PyObject *properties)
{
    struct span text;
    if (is_given(properties) && !add_entries(batch, properties))
        return false;
    if (is_given(tags)) {
        if (!take_text(tags, &text) || !add_entry(batch, tags_name, text))
            return false;
        batch->list[batch->count - 1].tags_code = java_hash(text);
    }
    if (is_given(keys) && (!take_text(keys, &text) || !add_entry(batch, keys_name, text)))
        return false;
    take_in(batch);
    return true;
}

bool batch_take_body(PyObject *value, struct span *body)
{
    if (take_bytes(value, body))
        return true;
    Py_buffer view;
    if (!PyMemoryView_Check(value) || PyObject_GetBuffer(value, &view, PyBUF_SIMPLE) < 0)
        return false;
    bool is_of_bytes = view.itemsize == 1;
    *body = span_of(view.buf, (size_t)view.len);
    PyBuffer_Release(&view); /* the memoryview itself keeps the memory */
    return is_of_bytes;
}
