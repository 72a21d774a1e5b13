/* The type of messages that reads return, see stored_message.h. Used under the GIL only.
 */

#include "stored_message.h"

/* Caches are NULL before first use. `stored`: the properties of the record, and the added ones. */
struct StoredMessage {
    PyObject_VAR_HEAD
    PyObject *weak_references;
    PyObject *topic, *born_host, *store_host, *body;
    PyObject *properties_raw, *properties, *body_error; /* caches, unless properties_raw was set */
    long long queue_offset, phy_offset, size_bytes, born_timestamp_ms, store_timestamp_ms;
    long long prepared_transaction_offset;
    int queue_id, sys_flag, flag, reconsume_times;
    unsigned int body_crc;
    uint8_t stored[];
};

/* The fields of a message, in the order of the Python class. */
static const char *const fields[] = {
    "topic",
    "queue_id",
    "queue_offset",
    "phy_offset",
    "size_bytes",
    "body_crc",
    "sys_flag",
    "flag",
    "born_timestamp_ms",
    "store_timestamp_ms",
    "born_host",
    "store_host",
    "reconsume_times",
    "prepared_transaction_offset",
    "body",
    "properties_raw",
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

static PyTypeObject *stored_type, *public_type;
static PyObject *properties_type; /* of the properties of a message: a dict that refuses changes */
static PyObject *key_separator;

static PyObject *bytes_of(struct span bytes)
{
    return PyBytes_FromStringAndSize((const char *)bytes.at, (Py_ssize_t)bytes.size);
}

static PyObject *text_of(struct span utf8)
{
    return PyUnicode_DecodeUTF8((const char *)utf8.at, (Py_ssize_t)utf8.size, "replace");
}

/* Returns the end byte of the last property if a client of 4.x has left it out; otherwise nothing. */
static struct span end_left_out(struct span properties)
{
    static const uint8_t end = SEGLOG_ENTRY_END;
    bool is_left_out = properties.size && properties.at[properties.size - 1] != end;
    return span_of(&end, is_left_out);
}

static uint8_t *put_span(uint8_t *at, struct span bytes)
{
    if (bytes.size)
        memcpy(at, bytes.at, bytes.size);
    return at + bytes.size;
}

StoredMessage *stored_message_new(const struct record *record, size_t hosts_end, struct span added)
{
    struct span end = added.size ? end_left_out(record->properties) : added;
    size_t size = record->properties.size + end.size + added.size;
    static allocfunc allocate;
    if (!allocate)
        allocate = (allocfunc)PyType_GetSlot(stored_type, Py_tp_alloc);
    StoredMessage *message = (StoredMessage *)allocate(stored_type, (Py_ssize_t)size);
    if (!message)
        return NULL;
    const uint8_t *head = record->bytes.at, *behind_hosts = head + hosts_end;
    message->queue_id = record->queue_id;
    message->queue_offset = record->queue_offset;
    message->phy_offset = read_i64(head + SEGLOG_HEADS_0_PHY_OFFSET_AT);
    message->size_bytes = (long long)record->bytes.size;
    message->body_crc = record->body_crc;
    message->sys_flag = record->sys_flag;
    message->flag = read_i32(head + SEGLOG_HEADS_0_FLAG_AT);
    message->born_timestamp_ms = read_i64(head + SEGLOG_HEADS_0_BORN_TIMESTAMP_MS_AT);
    message->store_timestamp_ms = record->store_timestamp_ms;
    message->reconsume_times = read_i32(behind_hosts);
    message->prepared_transaction_offset = read_i64(behind_hosts + sizeof(int32_t));
    put_span(put_span(put_span(message->stored, record->properties), end), added);
    message->body = bytes_of(record->body);
    if (!message->body) {
        Py_DECREF((PyObject *)message);
        return NULL;
    }
    return message;
}

bool stored_message_share(StoredMessage *message, PyObject *topic, PyObject *born_host, PyObject *store_host)
{
    message->topic = topic;
    message->born_host = born_host;
    message->store_host = store_host;
    return topic && born_host && store_host;
}

bool stored_message_set_properties(PyObject *value, PyObject *properties)
{
    if (!Py_IS_TYPE(value, stored_type))
        return false;
    StoredMessage *message = (StoredMessage *)value;
    PyObject *old = message->properties_raw;
    message->properties_raw = Py_NewRef(properties);
    Py_XDECREF(old);
    Py_CLEAR(message->properties);
    return true;
}

static void message_dealloc(PyObject *self)
{
    StoredMessage *message = (StoredMessage *)self;
    if (message->weak_references)
        PyObject_ClearWeakRefs(self);
    Py_XDECREF(message->topic);
    Py_XDECREF(message->born_host);
    Py_XDECREF(message->store_host);
    Py_XDECREF(message->body);
    Py_XDECREF(message->properties_raw);
    Py_XDECREF(message->properties);
    Py_XDECREF(message->body_error);
    object_free(self);
}

static struct span raw_of(StoredMessage *message)
{
    struct span raw;
    if (message->properties_raw && py_to_bytes(message->properties_raw, &raw))
        return raw;
    return span_of(message->stored, (size_t)Py_SIZE((PyObject *)message));
}

static PyObject *get_properties_raw(PyObject *self, void *Py_UNUSED(closure))
{
    StoredMessage *message = (StoredMessage *)self;
    if (!message->properties_raw)
        message->properties_raw = bytes_of(raw_of(message));
    return Py_XNewRef(message->properties_raw);
}

/* Adds an entry; ignores an entry without name or value. */
static bool add_entry(PyObject *found, struct span entry)
{
    size_t name_size = span_size_up_to(entry, SEGLOG_NAME_END);
    if (name_size == 0 || entry.size < name_size + 2)
        return true;
    PyObject *name = text_of(span_of(entry.at, name_size));
    PyObject *value = name ? text_of(span_after(entry, name_size + 1)) : NULL;
    bool is_added = value && PyDict_SetItem(found, name, value) == 0;
    Py_XDECREF(name);
    Py_XDECREF(value);
    return is_added;
}

/* Returns the properties as Properties.of in properties.py does. */
static PyObject *decoded(struct span raw)
{
    PyObject *found = PyObject_CallNoArgs(properties_type);
    while (found && raw.size)
        if (!add_entry(found, span_take_piece(&raw, SEGLOG_ENTRY_END)))
            Py_CLEAR(found);
    return found;
}

/* Decoding may run the garbage collector, and so another thread, which may decode them too: the first wins. */
static PyObject *get_properties(PyObject *self, void *Py_UNUSED(closure))
{
    StoredMessage *message = (StoredMessage *)self;
    if (!message->properties) {
        PyObject *found = decoded(raw_of(message));
        if (!found)
            return NULL;
        if (message->properties)
            Py_DECREF(found);
        else
            message->properties = found;
    }
    return Py_NewRef(message->properties);
}

/* Returns the value of one property; NULL without an exception if there is none. Reads it from the record,
 * without decoding the others, unless they were decoded already.
 */
static PyObject *value_of(PyObject *self, struct span name)
{
    StoredMessage *message = (StoredMessage *)self;
    if (!message->properties) {
        struct span value = property_value(raw_of(message), name);
        return value.size ? text_of(value) : NULL;
    }
    PyObject *key = text_of(span_of(name.at, name.size - 1));
    PyObject *value = key ? Py_XNewRef(PyDict_GetItemWithError(message->properties, key)) : NULL;
    Py_XDECREF(key);
    return value;
}

static PyObject *value_or_none(PyObject *self, struct span name)
{
    PyObject *value = value_of(self, name);
    if (value || PyErr_Occurred())
        return value;
    Py_RETURN_NONE;
}

static PyObject *get_tags(PyObject *self, void *Py_UNUSED(closure))
{
    return value_or_none(self, TEXT(SEGLOG_TAGS_NAME "\001"));
}

static PyObject *get_unique_key(PyObject *self, void *Py_UNUSED(closure))
{
    return value_or_none(self, TEXT(SEGLOG_UNIQ_KEY_NAME "\001"));
}

/* Returns the keys of a list of pieces: the pieces that are not empty. */
static PyObject *without_empty(PyObject *pieces)
{
    PyObject *found = PyList_New(0);
    for (Py_ssize_t i = 0; found && i < PyList_Size(pieces); i++) {
        PyObject *piece = PyList_GetItem(pieces, i);
        if (PyUnicode_GetLength(piece) && PyList_Append(found, piece) < 0)
            Py_CLEAR(found);
    }
    return found;
}

static PyObject *get_keys(PyObject *self, void *Py_UNUSED(closure))
{
    PyObject *text = value_of(self, TEXT(SEGLOG_KEYS_NAME "\001"));
    if (!text)
        return PyErr_Occurred() ? NULL : PyList_New(0);
    PyObject *pieces = PyUnicode_Split(text, key_separator, -1);
    PyObject *found = pieces ? without_empty(pieces) : NULL;
    Py_DECREF(text);
    Py_XDECREF(pieces);
    return found;
}

/* Calls Python once and keeps the result: inflating a body may take long. */
static PyObject *get_body_error(PyObject *self, void *Py_UNUSED(closure))
{
    StoredMessage *message = (StoredMessage *)self;
    if (!message->body_error) {
        PyObject *read = PyObject_CallMethod(self, "read_body", NULL);
        PyObject *error = read ? PyObject_GetAttrString(read, "error") : NULL;
        Py_XDECREF(read);
        if (!error)
            return NULL;
        if (message->body_error) /* another thread was faster */
            Py_DECREF(error);
        else
            message->body_error = error;
    }
    return Py_NewRef(message->body_error);
}

static PyObject *get_class(PyObject *Py_UNUSED(self), void *Py_UNUSED(closure))
{
    return Py_NewRef((PyObject *)public_type);
}

/* Returns the dict that vars() shows; changing it does not change the message. */
/* A new dict for each call, because dir(), inspect and mocks read names only from a dict. */
static PyObject *get_dict(PyObject *self, void *Py_UNUSED(closure))
{
    PyObject *values = PyDict_New();
    for (size_t i = 0; values && i < FIELDS; i++) {
        PyObject *value = PyObject_GetAttrString(self, fields[i]);
        if (!value || PyDict_SetItemString(values, fields[i], value) < 0)
            Py_CLEAR(values);
        Py_XDECREF(value);
    }
    return values;
}

/* Copies and pickles are objects of the Python class. */
static PyObject *message_reduce(PyObject *self, PyObject *Py_UNUSED(nothing))
{
    PyObject *values = PyTuple_New(FIELDS);
    for (size_t i = 0; values && i < FIELDS; i++) {
        PyObject *value = PyObject_GetAttrString(self, fields[i]);
        if (!value || PyTuple_SetItem(values, (Py_ssize_t)i, value) < 0)
            Py_CLEAR(values);
    }
    return values ? Py_BuildValue("(ON)", (PyObject *)public_type, values) : NULL;
}

#define OBJECT(name) {#name, T_OBJECT_EX, offsetof(StoredMessage, name), READONLY, NULL}
#define LONG(name) {#name, T_LONGLONG, offsetof(StoredMessage, name), READONLY, NULL}
#define INT(name) {#name, T_INT, offsetof(StoredMessage, name), READONLY, NULL}

static PyMemberDef members[] = {
    OBJECT(topic),
    INT(queue_id),
    LONG(queue_offset),
    LONG(phy_offset),
    LONG(size_bytes),
    {"body_crc", T_UINT, offsetof(StoredMessage, body_crc), READONLY, NULL},
    INT(sys_flag),
    INT(flag),
    LONG(born_timestamp_ms),
    LONG(store_timestamp_ms),
    OBJECT(born_host),
    OBJECT(store_host),
    INT(reconsume_times),
    LONG(prepared_transaction_offset),
    OBJECT(body),
    {"__weaklistoffset__", T_PYSSIZET, offsetof(StoredMessage, weak_references), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef computed[] = {
    {"properties_raw", get_properties_raw, NULL, NULL, NULL},
    {"properties", get_properties, NULL, NULL, NULL},
    {"tags", get_tags, NULL, NULL, NULL},
    {"keys", get_keys, NULL, NULL, NULL},
    {"unique_key", get_unique_key, NULL, NULL, NULL},
    {"body_error", get_body_error, NULL, NULL, NULL},
    {"__class__", get_class, NULL, NULL, NULL},
    {"__dict__", get_dict, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"__reduce__", message_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, (void *)message_dealloc},
    {Py_tp_members, members},
    {Py_tp_getset, computed},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "seglog.storage.kernels._native.StoredMessage",
    .basicsize = sizeof(StoredMessage),
    .itemsize = 1,
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

/* Whether an attribute of the Python class is about its storage of fields, and must not be copied. */
static bool is_of_storage(PyObject *name)
{
    return PyUnicode_CompareWithASCIIString(name, "__init__") == 0 ||
           PyUnicode_CompareWithASCIIString(name, "__weakref__") == 0;
}

/* Copies an attribute of the Python class, unless the type has its own. Every type has a docstring, at least
 * None, so that one is always copied.
 */
static bool adopt(PyObject *own, PyObject *name, PyObject *value)
{
    bool is_doc = PyUnicode_CompareWithASCIIString(name, "__doc__") == 0;
    int has_own = is_doc ? 0 : PySequence_Contains(own, name);
    if (has_own || is_of_storage(name))
        return has_own >= 0;
    return PyObject_SetAttr((PyObject *)stored_type, name, value) == 0;
}

static bool adopt_all(PyObject *own, PyObject *items)
{
    for (Py_ssize_t i = 0; i < PyList_Size(items); i++) {
        PyObject *item = PyList_GetItem(items, i);
        if (!adopt(own, PyTuple_GetItem(item, 0), PyTuple_GetItem(item, 1)))
            return false;
    }
    return true;
}

static bool find_properties_type(void)
{
    PyObject *module = PyImport_ImportModule("seglog.storage.format.record.properties");
    properties_type = module ? PyObject_GetAttrString(module, "Properties") : NULL;
    Py_XDECREF(module);
    return properties_type;
}

bool stored_message_bind(PyTypeObject *message_type)
{
    if (message_type == public_type)
        return true;
    if (public_type) {
        PyErr_SetString(PyExc_TypeError, "messages are of another class already");
        return false;
    }
    if (!properties_type && !find_properties_type())
        return false;
    PyObject *theirs = PyObject_GetAttrString((PyObject *)message_type, "__dict__");
    PyObject *items = theirs ? PyMapping_Items(theirs) : NULL;
    PyObject *own = items ? PyObject_GetAttrString((PyObject *)stored_type, "__dict__") : NULL;
    if (own && adopt_all(own, items))
        public_type = (PyTypeObject *)Py_NewRef((PyObject *)message_type);
    Py_XDECREF(theirs);
    Py_XDECREF(items);
    Py_XDECREF(own);
    return public_type;
}

int stored_message_add(PyObject *module)
{
    stored_type = type_add(module, &spec, NULL);
    key_separator = PyUnicode_InternFromString(" ");
    return stored_type && key_separator ? 0 : -1;
}
