/* Fills messages without a line of Python: what decode_message in seglog/storage/format/message.py does, for
 * records that are right. Of others the Python function says what is wrong.
 */

#include "decoder_type.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "../layout.h"
#include "record.h"

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
    allocfunc allocate_message;
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

/* The host whose address and port lie behind each other. */
static PyObject *host_of(Decoder *decoder, const uint8_t *at, size_t address_size)
{
    struct span bytes = span_of(at, address_size + SEGLOG_PORT_BYTES);
    struct cached *cached = &decoder->hosts[at[bytes.size - 1] % CACHED_HOSTS];
    if (is_cached(cached, bytes))
        return Py_NewRef(cached->value);
    PyObject *host = PyObject_CallFunction(decoder->new_host, "y#i", (const char *)at, (Py_ssize_t)address_size,
                                           (int)read_i32(at + address_size));
    return keep(cached, bytes, host);
}

/* Where the hosts of a record are; behind the store host come reconsume times and prepared offset. */
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
        is_filled = is_filled && values[i] && PyObject_GenericSetAttr(message, field_names[i], values[i]) == 0;
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
        message = decoder->allocate_message(decoder->message_type, 0);
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
    struct span bytes = span_of(buffer->buf, (size_t)buffer->len);
    *is_right = bytes.size >= SEGLOG_HEADS_0_SIZE &&
                record_read(bytes, read_i64(bytes.at + SEGLOG_HEADS_0_PHY_OFFSET_AT), &record) &&
                (!verify || record_verifies(&record));
    return *is_right ? message_of(decoder, &record) : NULL;
}

static PyObject *call_slow(const Decoder *decoder, PyObject *record, bool verify)
{
    PyObject *arguments = PyTuple_Pack(1, record);
    PyObject *named = Py_BuildValue("{O:O}", verify_name, verify ? Py_True : Py_False);
    PyObject *message = arguments && named ? PyObject_Call(decoder->slow_decode, arguments, named) : NULL;
    Py_XDECREF(arguments);
    Py_XDECREF(named);
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
    if (keywords && PyDict_Size(keywords)) {
        PyErr_SetString(PyExc_TypeError, "Decoder takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O!OO", &PyType_Type, &message_type, &new_host, &slow_decode))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Decoder *decoder = (Decoder *)allocate(type, 0);
    if (!decoder)
        return NULL;
    decoder->message_type = (PyTypeObject *)Py_NewRef(message_type);
    decoder->allocate_message = (allocfunc)PyType_GetSlot(decoder->message_type, Py_tp_alloc);
    decoder->new_host = Py_NewRef(new_host);
    decoder->slow_decode = Py_NewRef(slow_decode);
    return (PyObject *)decoder;
}

static void decoder_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Decoder *decoder = (Decoder *)self;
    Py_XDECREF((PyObject *)decoder->message_type);
    Py_XDECREF(decoder->new_host);
    Py_XDECREF(decoder->slow_decode);
    Py_XDECREF(decoder->topic.value);
    for (int i = 0; i < CACHED_HOSTS; i++)
        Py_XDECREF(decoder->hosts[i].value);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"decode", (PyCFunction)(void (*)(void))decoder_decode, METH_FASTCALL | METH_KEYWORDS, NULL},
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

int decoder_type_add(PyObject *module)
{
    static const char *const names[FIELDS] = {
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
    for (int i = 0; i < FIELDS; i++)
        if (!(field_names[i] = PyUnicode_InternFromString(names[i])))
            return -1;
    verify_name = PyUnicode_InternFromString("verify");
    PyObject *type = PyType_FromSpec(&spec);
    if (!verify_name || !type || PyModule_AddObjectRef(module, "Decoder", type) < 0) {
        Py_XDECREF(type);
        return -1;
    }
    Py_DECREF(type);
    return 0;
}
