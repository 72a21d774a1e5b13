/* Decodes messages from records, and the tags of filters. */

#include "reads.h"
#include "record.h"
#include "stored_message.h"

/* codes: `count` tags codes. tags: a tuple of bytes, NULL if the codes are enough. */
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

/* Creates messages without executing Python code, as decode_message in seglog/storage/format/record/message.py
 * does, for valid records. For other records the Python function raises the right error.
 */

enum { CACHED_HOSTS = 16, MAX_CACHED_BYTES = 128 };

/* A value that was created before from the same bytes; NULL before the first. */
struct cached {
    PyObject *value;
    uint8_t bytes[MAX_CACHED_BYTES];
    size_t size;
};

typedef struct {
    PyObject_HEAD
    PyObject *new_host, *slow_decode;
    struct cached topic, hosts[CACHED_HOSTS];
} Decoder;

static PyTypeObject *iterator_type;
static PyObject *verify_name;

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

enum { HOST_BYTES = SEGLOG_IPV6_BYTES + SEGLOG_PORT_BYTES };

/* A host in stored form: an address and the port behind it. */
struct stored_host {
    uint8_t bytes[HOST_BYTES];
    size_t size;
};

static PyObject *host_of(Decoder *decoder, const struct stored_host *stored)
{
    struct span bytes = span_of(stored->bytes, stored->size);
    struct cached *cached = &decoder->hosts[bytes.at[bytes.size - 1] % CACHED_HOSTS];
    if (is_cached(cached, bytes))
        return Py_NewRef(cached->value);
    size_t address_size = bytes.size - SEGLOG_PORT_BYTES;
    PyObject *host = PyObject_CallFunction(decoder->new_host, "y#i", (const char *)bytes.at,
                                           (Py_ssize_t)address_size, (int)read_i32(bytes.at + address_size));
    return keep(cached, bytes, host);
}

static struct stored_host stored_host_at(const uint8_t *at, bool is_v6)
{
    size_t address_size = is_v6 ? SEGLOG_IPV6_BYTES : SEGLOG_IPV4_BYTES;
    struct stored_host host = {.size = address_size + SEGLOG_PORT_BYTES};
    memcpy(host.bytes, at, host.size);
    return host;
}

/* Copies the whole record before it creates a host: that may run Python code, which may release the record's
 * memory. */
static PyObject *message_of(Decoder *decoder, const struct record *record, struct span added)
{
    enum {
        FIRST = SEGLOG_IPV4_BYTES + SEGLOG_PORT_BYTES,
        BETWEEN = SEGLOG_HEADS_0_STORE_ADDRESS_AT - SEGLOG_HEADS_0_BORN_ADDRESS_AT - FIRST
    };
    size_t at = SEGLOG_HEADS_0_BORN_ADDRESS_AT;
    struct stored_host born = stored_host_at(record->bytes.at + at, record->sys_flag & SEGLOG_BORN_HOST_V6);
    at += born.size + BETWEEN;
    struct stored_host store = stored_host_at(record->bytes.at + at, record->sys_flag & SEGLOG_STORE_HOST_V6);
    StoredMessage *message = stored_message_new(record, at + store.size, added);
    PyObject *topic = message ? topic_of(decoder, record->topic) : NULL;
    if (!topic) {
        Py_XDECREF((PyObject *)message);
        return NULL;
    }
    PyObject *born_host = host_of(decoder, &born);
    PyObject *store_host = born_host ? host_of(decoder, &store) : NULL;
    if (!stored_message_share(message, topic, born_host, store_host))
        Py_CLEAR(message);
    return (PyObject *)message;
}

/* Decodes a valid record; sets *is_right to false for any other. */
static PyObject *decode_right(Decoder *decoder, struct span bytes, bool verify, bool *is_right)
{
    struct record record;
    *is_right = bytes.size >= SEGLOG_HEADS_0_SIZE &&
                record_read(bytes, read_i64(bytes.at + SEGLOG_HEADS_0_PHY_OFFSET_AT), &record) &&
                (!verify || record_verifies(&record));
    return *is_right ? message_of(decoder, &record, span_of(NULL, 0)) : NULL;
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
    PyObject *message = decode_right((Decoder *)self, span_in(&buffer), verify, &is_right);
    PyBuffer_Release(&buffer);
    return is_right ? message : call_slow((Decoder *)self, given[0], verify);
}

/* An iterator over the messages of a read, which decodes each message when it is needed. `records` are those of
 * the result, NULL at the end; `view` is the run whose bytes are in `buffer`, NULL for none.
 */
typedef struct {
    PyObject_HEAD
    Decoder *decoder;
    PyObject *result, *view;
    const struct read_records *records;
    Py_buffer buffer;
    size_t run, record;
    int64_t at; /* position in the run */
} Iterator;

static void let_go(Iterator *iterator)
{
    bool has_buffer = iterator->view;
    iterator->view = NULL;
    if (has_buffer)
        PyBuffer_Release(&iterator->buffer);
}

static bool take_hold(Iterator *iterator, PyObject *view)
{
    if (view == iterator->view)
        return true;
    let_go(iterator);
    if (PyObject_GetBuffer(view, &iterator->buffer, PyBUF_SIMPLE) < 0)
        return false;
    iterator->view = view;
    return true;
}

/* Decodes a record of a run. If the memory has become shorter, as a bytearray may, it has only a part of the
 * record.
 */
static PyObject *decode_at(Iterator *iterator, const struct record_run *run, int64_t start, int64_t size)
{
    bool is_right = start + size <= iterator->buffer.len;
    if (is_right) {
        struct span rest = span_after(span_in(&iterator->buffer), (size_t)start), bytes = {rest.at, (size_t)size};
        if (iterator->at)
            fetch_soon(span_after(rest, (size_t)size), (size_t)size);
        PyObject *message = decode_right(iterator->decoder, bytes, false, &is_right);
        if (is_right)
            return message;
    }
    PyObject *record = part_of(run->memory, start, size);
    PyObject *message = record ? call_slow(iterator->decoder, record, false) : NULL;
    Py_XDECREF(record);
    return message;
}

/* Advances before it decodes, so that a damaged record raises its error only once. Decoding may let another thread
 * run, which may end the iteration: so the result is held meanwhile.
 */
static PyObject *iterator_next(PyObject *self)
{
    Iterator *iterator = (Iterator *)self;
    const struct read_records *records = iterator->records;
    if (!records || iterator->record == records->count) {
        iterator->records = NULL;
        let_go(iterator);
        Py_CLEAR(iterator->result);
        return NULL;
    }
    const struct record_run *run = &records->runs[iterator->run];
    if (!take_hold(iterator, run->memory))
        return NULL;
    int64_t start = run->start + iterator->at, size = records->sizes[iterator->record++];
    iterator->at += size;
    if (iterator->at >= run->size_bytes) {
        iterator->at = 0;
        iterator->run++;
    }
    PyObject *result = Py_NewRef(iterator->result);
    PyObject *message = decode_at(iterator, run, start, size);
    Py_DECREF(result);
    return message;
}

static void iterator_dealloc(PyObject *self)
{
    Iterator *iterator = (Iterator *)self;
    let_go(iterator);
    Py_XDECREF((PyObject *)iterator->decoder);
    Py_XDECREF(iterator->result);
    object_free(self);
}

/* iterate(result) */
static PyObject *decoder_iterate(PyObject *self, PyObject *result)
{
    if (!records_of(result)) {
        PyErr_SetString(PyExc_TypeError, "a ReadResult expected");
        return NULL;
    }
    Iterator *iterator = object_new(iterator_type);
    if (!iterator)
        return NULL;
    iterator->decoder = (Decoder *)Py_NewRef(self);
    iterator->result = Py_NewRef(result);
    iterator->records = records_of(result);
    return (PyObject *)iterator;
}

enum decoded { DECODED, NOT_PLAIN, RAISED };

/* Appends the messages of consecutive records to a list. */
static enum decoded decode_run(Decoder *decoder, struct span run, struct span added, PyObject *found)
{
    while (run.size) {
        struct record record;
        if (run.size < SEGLOG_HEADS_0_SIZE ||
            !record_read(run, read_i64(run.at + SEGLOG_HEADS_0_PHY_OFFSET_AT), &record) ||
            (record.sys_flag & SEGLOG_INNER_BATCH))
            return NOT_PLAIN;
        fetch_soon(span_after(run, record.bytes.size), record.bytes.size);
        PyObject *message = message_of(decoder, &record, added);
        int is_appended = message ? PyList_Append(found, message) : -1;
        Py_XDECREF(message);
        if (is_appended < 0)
            return RAISED;
        run = span_after(run, record.bytes.size);
    }
    return DECODED;
}

static enum decoded decode_runs(Decoder *decoder, PyObject *runs, struct span added, PyObject *found)
{
    enum decoded decoded = DECODED;
    for (Py_ssize_t i = 0; decoded == DECODED && i < PyList_Size(runs); i++) {
        Py_buffer buffer;
        PyObject *run = Py_NewRef(PyList_GetItem(runs, i)); /* held: creating a host may run Python code */
        if (PyObject_GetBuffer(run, &buffer, PyBUF_SIMPLE) < 0) {
            decoded = RAISED;
        } else {
            decoded = decode_run(decoder, span_in(&buffer), added, found);
            PyBuffer_Release(&buffer);
        }
        Py_DECREF(run);
    }
    return decoded;
}

/* decode_runs(runs, added) */
static PyObject *decoder_decode_runs(PyObject *self, PyObject *args)
{
    PyObject *runs;
    const char *added;
    Py_ssize_t added_size;
    if (!PyArg_ParseTuple(args, "O!y#", &PyList_Type, &runs, &added, &added_size))
        return NULL;
    PyObject *found = PyList_New(0);
    if (!found)
        return NULL;
    struct span more = span_of((const uint8_t *)added, (size_t)added_size);
    enum decoded decoded = decode_runs((Decoder *)self, runs, more, found);
    if (decoded == DECODED)
        return found;
    Py_DECREF(found);
    if (decoded == RAISED)
        return NULL;
    Py_RETURN_NONE;
}

/* set_properties(message, properties) */
static PyObject *decoder_set_properties(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *message, *properties;
    if (!PyArg_ParseTuple(args, "OS", &message, &properties))
        return NULL;
    return PyBool_FromLong(stored_message_set_properties(message, properties));
}

static PyType_Slot iterator_slots[] = {
    {Py_tp_dealloc, (void *)iterator_dealloc},
    {Py_tp_iter, (void *)PyObject_SelfIter},
    {Py_tp_iternext, (void *)iterator_next},
    {0, NULL},
};

static PyType_Spec iterator_spec = {
    .name = "seglog.storage.kernels._native.MessageIterator",
    .basicsize = sizeof(Iterator),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = iterator_slots,
};

static PyObject *decoder_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *message_type, *new_host, *slow_decode;
    if (!has_no_keywords(keywords, "Decoder") ||
        !PyArg_ParseTuple(args, "O!OO", &PyType_Type, &message_type, &new_host, &slow_decode))
        return NULL;
    Decoder *decoder = stored_message_bind((PyTypeObject *)message_type) ? object_new(type) : NULL;
    if (!decoder)
        return NULL;
    decoder->new_host = Py_NewRef(new_host);
    decoder->slow_decode = Py_NewRef(slow_decode);
    return (PyObject *)decoder;
}

static void decoder_dealloc(PyObject *self)
{
    Decoder *decoder = (Decoder *)self;
    Py_XDECREF(decoder->new_host);
    Py_XDECREF(decoder->slow_decode);
    Py_XDECREF(decoder->topic.value);
    for (int i = 0; i < CACHED_HOSTS; i++)
        Py_XDECREF(decoder->hosts[i].value);
    object_free(self);
}

static PyMethodDef methods[] = {
    FAST_METHOD("decode", decoder_decode),
    {"decode_runs", decoder_decode_runs, METH_VARARGS, NULL},
    {"iterate", decoder_iterate, METH_O, NULL},
    {"set_properties", decoder_set_properties, METH_VARARGS, NULL},
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
    static const char *const verify_text = "verify";
    iterator_type = type_add(module, &iterator_spec, NULL);
    return iterator_type && type_add(module, &spec, "Decoder") && intern(&verify_name, &verify_text, 1) ? 0 : -1;
}
