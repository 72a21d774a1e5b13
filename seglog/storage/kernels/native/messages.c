/* Messages out of records, and the tags that a reader wants. */

#include "reads.h"
#include "record.h"

/* codes: `count` of them. tags: a tuple of bytes, NULL if codes are enough. */
struct TagSet {
    PyObject_HEAD
    int64_t *codes;
    size_t count;
    PyObject *tags;
};

static PyTypeObject *tag_set_type;

bool tag_set_has_code(const TagSet *tags, int64_t tags_code)
{
    for (size_t i = 0; i < tags->count; i++)
        if (tags->codes[i] == tags_code)
            return true;
    return false;
}

bool tag_set_is_loose(const TagSet *tags)
{
    return !tags->tags;
}

bool tag_set_has_tag(const TagSet *tags, struct span properties)
{
    struct span found = property_value(properties, TEXT(SEGLOG_TAGS "\001"));
    for (Py_ssize_t i = 0; found.size && i < PyTuple_Size(tags->tags); i++) {
        char *tag;
        Py_ssize_t size;
        PyBytes_AsStringAndSize(PyTuple_GetItem(tags->tags, i), &tag, &size);
        if ((size_t)size == found.size && memcmp(tag, found.at, found.size) == 0)
            return true;
    }
    return false;
}

static bool are_bytes(PyObject *tags)
{
    if (!PyTuple_Check(tags))
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_Size(tags); i++)
        if (!PyBytes_Check(PyTuple_GetItem(tags, i)))
            return false;
    return true;
}

static bool take_codes(TagSet *set, PyObject *codes)
{
    Py_ssize_t count = PyTuple_Size(codes);
    set->codes = PyMem_Calloc((size_t)count + 1, sizeof *set->codes);
    if (!set->codes) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        set->codes[set->count] = PyLong_AsLongLong(PyTuple_GetItem(codes, i));
        if (set->codes[set->count++] == -1 && PyErr_Occurred())
            return false;
    }
    return true;
}

static PyObject *tag_set_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *codes, *tags;
    if (!has_no_keywords(keywords, "TagSet") || !PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &codes, &tags))
        return NULL;
    if (tags != Py_None && !are_bytes(tags)) {
        PyErr_SetString(PyExc_TypeError, "tags are a tuple of bytes, or None");
        return NULL;
    }
    TagSet *set = object_new(type);
    if (!set)
        return NULL;
    set->tags = tags == Py_None ? NULL : Py_NewRef(tags);
    if (!take_codes(set, codes)) {
        Py_DECREF(set);
        return NULL;
    }
    return (PyObject *)set;
}

static void tag_set_dealloc(PyObject *self)
{
    TagSet *set = (TagSet *)self;
    PyMem_Free(set->codes);
    Py_XDECREF(set->tags);
    object_free(self);
}

static PyType_Slot tag_set_slots[] = {
    {Py_tp_new, (void *)tag_set_new},
    {Py_tp_dealloc, (void *)tag_set_dealloc},
    {0, NULL},
};

static PyType_Spec tag_set_spec = {
    .name = "seglog.storage.kernels._native.TagSet",
    .basicsize = sizeof(TagSet),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = tag_set_slots,
};

const TagSet *as_tag_set(PyObject *value)
{
    return value && Py_IS_TYPE(value, tag_set_type) ? (const TagSet *)value : NULL;
}

int tag_set_add(PyObject *module)
{
    tag_set_type = type_add(module, &tag_set_spec, "TagSet");
    return tag_set_type ? 0 : -1;
}

/* Fills messages without a line of Python: what decode_message in seglog/storage/format/record/message.py
 * does, for records that are right. Of others the Python function says what is wrong.
 */

/* The fields of a message, in the order of the Python class. */
enum {
    TOPIC,
    QUEUE_ID,
    QUEUE_OFFSET,
    PHY_OFFSET,
    SIZE_BYTES,
    BODY_CRC,
    SYS_FLAG,
    FLAG,
    BORN_TIMESTAMP_MS,
    STORE_TIMESTAMP_MS,
    BORN_HOST,
    STORE_HOST,
    RECONSUME_TIMES,
    PREPARED_TRANSACTION_OFFSET,
    BODY,
    PROPERTIES_RAW,
    FIELDS
};
enum { CACHED_HOSTS = 16, MAX_CACHED_BYTES = 128 };

/* A value that was made before of the same bytes; NULL before the first. */
struct cached {
    PyObject *value;
    uint8_t bytes[MAX_CACHED_BYTES];
    size_t size;
};

typedef struct {
    PyObject_HEAD
    PyTypeObject *message_type;
    PyObject *new_host, *slow_decode;
    struct cached topic, hosts[CACHED_HOSTS];
} Decoder;

static PyObject *field_names[FIELDS], *verify_name;

static PyObject *bytes_of(struct span bytes)
{
    return PyBytes_FromStringAndSize((const char *)bytes.at, (Py_ssize_t)bytes.size);
}

static bool is_cached(const struct cached *cached, struct span bytes)
{
    return cached->value && cached->size == bytes.size && memcmp(cached->bytes, bytes.at, bytes.size) == 0;
}

/* Keeps a new value, and returns it. */
static PyObject *keep(struct cached *cached, struct span bytes, PyObject *value)
{
    if (!value || bytes.size > sizeof cached->bytes)
        return value;
    PyObject *old = cached->value;
    memcpy(cached->bytes, bytes.at, bytes.size);
    cached->size = bytes.size;
    cached->value = Py_NewRef(value);
    Py_XDECREF(old);
    return value;
}

static PyObject *topic_of(Decoder *decoder, struct span topic)
{
    if (is_cached(&decoder->topic, topic))
        return Py_NewRef(decoder->topic.value);
    PyObject *text = PyUnicode_DecodeUTF8((const char *)topic.at, (Py_ssize_t)topic.size, "replace");
    return keep(&decoder->topic, topic, text);
}

/* The host of an address and the port after it. */
static PyObject *host_of(Decoder *decoder, const uint8_t *at, size_t address_size)
{
    struct span bytes = span_of(at, address_size + SEGLOG_PORT_BYTES);
    struct cached *cached = &decoder->hosts[at[bytes.size - 1] % CACHED_HOSTS];
    if (is_cached(cached, bytes))
        return Py_NewRef(cached->value);
    PyObject *host = PyObject_CallFunction(decoder->new_host, "y#i", (const char *)at,
                                           (Py_ssize_t)address_size, (int)read_i32(at + address_size));
    return keep(cached, bytes, host);
}

/* Where the hosts of a record are; after the store host come reconsume times and prepared offset. */
struct hosts {
    const uint8_t *born, *store;
    size_t born_size, store_size;
};

static struct hosts hosts_of(const struct record *record)
{
    enum { BETWEEN = SEGLOG_HEADS_0_STORE_ADDRESS_AT - SEGLOG_HEADS_0_BORN_ADDRESS_AT - SEGLOG_IPV4_BYTES };
    struct hosts hosts = {
        .born = record->bytes.at + SEGLOG_HEADS_0_BORN_ADDRESS_AT,
        .born_size = record->sys_flag & SEGLOG_BORN_HOST_V6 ? SEGLOG_IPV6_BYTES : SEGLOG_IPV4_BYTES,
        .store_size = record->sys_flag & SEGLOG_STORE_HOST_V6 ? SEGLOG_IPV6_BYTES : SEGLOG_IPV4_BYTES,
    };
    hosts.store = hosts.born + hosts.born_size + BETWEEN;
    return hosts;
}

static bool fill(PyObject *message, PyObject **values)
{
    bool is_filled = true;
    for (int i = 0; i < FIELDS; i++)
        is_filled =
            is_filled && values[i] && PyObject_GenericSetAttr(message, field_names[i], values[i]) == 0;
    return is_filled;
}

/* What may be cached, and may take a call of Python to make. */
static bool make_shared(Decoder *decoder, const struct record *record, const struct hosts *hosts,
                        PyObject **values)
{
    return (values[TOPIC] = topic_of(decoder, record->topic)) &&
           (values[BORN_HOST] = host_of(decoder, hosts->born, hosts->born_size)) &&
           (values[STORE_HOST] = host_of(decoder, hosts->store, hosts->store_size));
}

static void make_own(const struct record *record, const uint8_t *behind_hosts, PyObject **values)
{
    const uint8_t *head = record->bytes.at;
    values[QUEUE_ID] = PyLong_FromLong(record->queue_id);
    values[QUEUE_OFFSET] = PyLong_FromLongLong(record->queue_offset);
    values[PHY_OFFSET] = PyLong_FromLongLong(read_i64(head + SEGLOG_HEADS_0_PHY_OFFSET_AT));
    values[SIZE_BYTES] = PyLong_FromSize_t(record->bytes.size);
    values[BODY_CRC] = PyLong_FromUnsignedLong(record->body_crc);
    values[SYS_FLAG] = PyLong_FromLong(record->sys_flag);
    values[FLAG] = PyLong_FromLong(read_i32(head + SEGLOG_HEADS_0_FLAG_AT));
    values[BORN_TIMESTAMP_MS] = PyLong_FromLongLong(read_i64(head + SEGLOG_HEADS_0_BORN_TIMESTAMP_MS_AT));
    values[STORE_TIMESTAMP_MS] = PyLong_FromLongLong(record->store_timestamp_ms);
    values[RECONSUME_TIMES] = PyLong_FromLong(read_i32(behind_hosts));
    values[PREPARED_TRANSACTION_OFFSET] = PyLong_FromLongLong(read_i64(behind_hosts + sizeof(int32_t)));
    values[BODY] = bytes_of(record->body);
    values[PROPERTIES_RAW] = bytes_of(record->properties);
}

static PyObject *message_of(Decoder *decoder, const struct record *record)
{
    PyObject *values[FIELDS] = {0};
    PyObject *message = NULL;
    struct hosts hosts = hosts_of(record);
    if (make_shared(decoder, record, &hosts, values)) {
        make_own(record, hosts.store + hosts.store_size + SEGLOG_PORT_BYTES, values);
        message = object_new(decoder->message_type);
    }
    if (message && !fill(message, values))
        Py_CLEAR(message);
    for (int i = 0; i < FIELDS; i++)
        Py_XDECREF(values[i]);
    return message;
}

/* Reads a record that is right; *is_right says whether it is. */
static PyObject *decode_right(Decoder *decoder, const Py_buffer *buffer, bool verify, bool *is_right)
{
    struct record record;
    struct span bytes = span_in(buffer);
    *is_right = bytes.size >= SEGLOG_HEADS_0_SIZE &&
                record_read(bytes, read_i64(bytes.at + SEGLOG_HEADS_0_PHY_OFFSET_AT), &record) &&
                (!verify || record_verifies(&record));
    return *is_right ? message_of(decoder, &record) : NULL;
}

static PyObject *call_slow(const Decoder *decoder, PyObject *record, bool verify)
{
    PyObject *arguments[] = {record, verify ? Py_True : Py_False};
    PyObject *names = PyTuple_Pack(1, verify_name);
    PyObject *message = names ? call_with(decoder->slow_decode, arguments, 1, names) : NULL;
    Py_XDECREF(names);
    return message;
}

/* decode(record, *, verify=False) */
static PyObject *decoder_decode(PyObject *self, PyObject *const *given, Py_ssize_t count, PyObject *keywords)
{
    Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
    if (count != 1 || named > 1 ||
        (named && PyUnicode_Compare(PyTuple_GetItem(keywords, 0), verify_name) != 0)) {
        PyErr_SetString(PyExc_TypeError, "decode takes a record, and verify by name");
        return NULL;
    }
    int verify = named ? PyObject_IsTrue(given[1]) : 0;
    Py_buffer buffer;
    if (verify < 0 || PyObject_GetBuffer(given[0], &buffer, PyBUF_SIMPLE) < 0)
        return NULL;
    bool is_right;
    PyObject *message = decode_right((Decoder *)self, &buffer, verify, &is_right);
    PyBuffer_Release(&buffer);
    return is_right ? message : call_slow((Decoder *)self, given[0], verify);
}

static PyObject *decoder_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *message_type, *new_host, *slow_decode;
    if (!has_no_keywords(keywords, "Decoder") ||
        !PyArg_ParseTuple(args, "O!OO", &PyType_Type, &message_type, &new_host, &slow_decode))
        return NULL;
    Decoder *decoder = object_new(type);
    if (!decoder)
        return NULL;
    decoder->message_type = (PyTypeObject *)Py_NewRef(message_type);
    decoder->new_host = Py_NewRef(new_host);
    decoder->slow_decode = Py_NewRef(slow_decode);
    return (PyObject *)decoder;
}

static void decoder_dealloc(PyObject *self)
{
    Decoder *decoder = (Decoder *)self;
    Py_XDECREF((PyObject *)decoder->message_type);
    Py_XDECREF(decoder->new_host);
    Py_XDECREF(decoder->slow_decode);
    Py_XDECREF(decoder->topic.value);
    for (int i = 0; i < CACHED_HOSTS; i++)
        Py_XDECREF(decoder->hosts[i].value);
    object_free(self);
}

static PyMethodDef methods[] = {
    FAST_METHOD("decode", decoder_decode),
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)decoder_new},
    {Py_tp_dealloc, (void *)decoder_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "seglog.storage.kernels._native.Decoder",
    .basicsize = sizeof(Decoder),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

int decoder_add(PyObject *module)
{
    static const char *const texts[FIELDS] = {
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
    static const char *const verify_text = "verify";
    return intern(field_names, texts, FIELDS) && intern(&verify_name, &verify_text, 1) &&
                   type_add(module, &spec, "Decoder")
               ? 0
               : -1;
}
