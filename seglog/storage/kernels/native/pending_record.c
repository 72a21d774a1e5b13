/* Encodes new records, as seglog/storage/kernels/pending_record.py does, and the type PendingRecord. */

#include "fast_path.h"
#include "record.h"

enum {
    IPV4 = SEGLOG_IPV4_BYTES,
    IPV6 = SEGLOG_IPV6_BYTES,
    SIZE_FIELD = SEGLOG_FILLER_MAGIC_AT,
    BODY_SIZE_FIELD = SEGLOG_HEADS_0_SIZE - SEGLOG_HEADS_0_BODY_BYTES_AT /* ends the head */
};

/* Writes one field after the other. */
struct pen {
    uint8_t *at;
};

static void put_u32(struct pen *pen, uint32_t value)
{
    write_u32(pen->at, value);
    pen->at += 4;
}

static void put_i32(struct pen *pen, int32_t value)
{
    put_u32(pen, (uint32_t)value);
}

static void put_i64(struct pen *pen, int64_t value)
{
    write_i64(pen->at, value);
    pen->at += 8;
}

static void put_u16(struct pen *pen, size_t value)
{
    write_u16(pen->at, value);
    pen->at += 2;
}

static void put_bytes(struct pen *pen, struct span bytes)
{
    if (bytes.size)
        memcpy(pen->at, bytes.at, bytes.size);
    pen->at += bytes.size;
}

static void put_host(struct pen *pen, const struct host *host)
{
    put_bytes(pen, span_of(host->address, host->address_size));
    put_i32(pen, host->port);
}

static size_t crc_property_size(bool record_crc)
{
    return record_crc ? SEGLOG_CRC_PROPERTY_BYTES : 0;
}

static bool has_address(const struct host *host)
{
    return host->address_size == IPV4 || host->address_size == IPV6;
}

static bool are_usual_properties(struct span properties, bool record_crc)
{
    if (properties.size == 0)
        return true;
    if (properties_hold(properties, TEXT(SEGLOG_CRC_NAME)))
        return false;
    if (record_crc)
        return properties.at[properties.size - 1] == SEGLOG_ENTRY_END;
    return !properties_look_torn(properties);
}

bool record_shares_usual(const struct record_values *values)
{
    return values->topic.size <= SEGLOG_MAX_TOPIC_BYTES &&
           !spans_are_equal(values->topic, TEXT(SEGLOG_SCHEDULE_TOPIC)) && has_address(&values->born_host) &&
           has_address(&values->store_host);
}

bool record_owns_usual(struct span body, struct span properties, bool record_crc)
{
    return properties.size + crc_property_size(record_crc) <= SEGLOG_MAX_PROPERTIES_BYTES &&
           body.size <= INT32_MAX / 2 && are_usual_properties(properties, record_crc);
}

size_t record_bare_size(const struct record_values *values)
{
    size_t addresses = values->born_host.address_size + values->store_host.address_size;
    return SEGLOG_MIN_RECORD_BYTES - 2 * IPV4 + addresses + values->topic.size +
           crc_property_size(values->record_crc);
}

static size_t record_size(const struct record_values *values)
{
    return record_bare_size(values) + values->body.size + values->properties.size;
}

static int32_t stored_sys_flag(const struct record_values *values)
{
    int32_t flag = values->sys_flag & ~SEGLOG_HOST_BITS;
    if (values->born_host.address_size != IPV4)
        flag |= SEGLOG_BORN_HOST_V6;
    if (values->store_host.address_size != IPV4)
        flag |= SEGLOG_STORE_HOST_V6;
    return flag;
}

/* Writes the head, with zeros for the fields that depend on the place. */
static void put_head(struct pen *pen, const struct record_values *values)
{
    put_i32(pen, (int32_t)record_size(values));
    put_u32(pen, SEGLOG_MAGIC_V1);
    put_u32(pen, crc32_of(values->body) & SEGLOG_CRC_MASK);
    put_i32(pen, values->queue_id);
    put_i32(pen, values->flag);
    put_i64(pen, 0); /* queue offset */
    put_i64(pen, 0); /* physical offset */
    put_i32(pen, stored_sys_flag(values));
    put_i64(pen, values->born_timestamp_ms);
    put_host(pen, &values->born_host);
    put_i64(pen, 0); /* store time */
    put_host(pen, &values->store_host);
    put_i32(pen, values->reconsume_times);
    put_i64(pen, values->prepared_transaction_offset);
    put_i32(pen, (int32_t)values->body.size);
}

/* Writes the bytes behind the head, without the CRC property. */
static void put_rest(struct pen *pen, struct span topic, struct span body, struct span properties,
                     bool record_crc)
{
    put_bytes(pen, body);
    *pen->at++ = (uint8_t)topic.size;
    put_bytes(pen, topic);
    put_u16(pen, properties.size + crc_property_size(record_crc));
    put_bytes(pen, properties);
}

void record_head_make(const struct record_values *values, struct record_head *head)
{
    struct pen pen = {head->bytes};
    put_head(&pen, values);
    head->size = (size_t)(pen.at - head->bytes);
    head->store_timestamp_ms_at = record_store_timestamp_at(stored_sys_flag(values));
    head->record_crc = values->record_crc;
}

/* Fills the head of one record. */
static void fill_head(const struct record_head *shared, const struct record_own *own, size_t size,
                      uint8_t head[SEGLOG_HEADS_48_SIZE])
{
    memcpy(head, shared->bytes, SEGLOG_HEADS_48_SIZE);
    write_u32(head + SEGLOG_HEADS_0_SIZE_BYTES_AT, (uint32_t)size);
    write_u32(head + SEGLOG_HEADS_0_BODY_CRC_AT, crc32_of(own->body) & SEGLOG_CRC_MASK);
    write_u32(head + SEGLOG_HEADS_0_QUEUE_ID_AT, (uint32_t)own->queue_id);
    write_u32(head + SEGLOG_HEADS_0_FLAG_AT, (uint32_t)own->flag);
    write_i64(head + SEGLOG_HEADS_0_QUEUE_OFFSET_AT, own->queue_offset);
    write_i64(head + SEGLOG_HEADS_0_PHY_OFFSET_AT, own->phy_offset);
    write_i64(head + SEGLOG_HEADS_0_BORN_TIMESTAMP_MS_AT, own->born_timestamp_ms);
    write_i64(head + shared->store_timestamp_ms_at, own->store_timestamp_ms);
    write_u32(head + shared->size - BODY_SIZE_FIELD, (uint32_t)own->body.size);
}

/* Returns the CRC of a record whose size field is still zero. A CRC adds each four bytes to its register: if the
 * register starts with the size, four zero bytes give the same result as the size itself.
 */
static uint32_t crc_with_size(const uint8_t *size_field, uint8_t *record, size_t covered)
{
    uint32_t size = (uint32_t)size_field[3] << 24 | (uint32_t)size_field[2] << 16 |
                    (uint32_t)size_field[1] << 8 | size_field[0];
    memset(record, 0, SIZE_FIELD);
    return crc32_on(size, span_of(record, covered));
}

void record_write(const struct record_head *shared, const struct record_own *own, size_t size,
                  uint8_t *target)
{
    uint8_t head[SEGLOG_HEADS_48_SIZE];
    size_t head_size = shared->size;
    fill_head(shared, own, size, head);
    if (head_size == SEGLOG_HEADS_0_SIZE) /* the usual case: for a constant size the compiler generates moves */
        memcpy(target + SIZE_FIELD, head + SIZE_FIELD, SEGLOG_HEADS_0_SIZE - SIZE_FIELD);
    else
        memcpy(target + SIZE_FIELD, head + SIZE_FIELD, head_size - SIZE_FIELD);
    struct pen pen = {target + head_size};
    put_rest(&pen, own->topic, own->body, own->properties, shared->record_crc);
    if (shared->record_crc)
        crc_property_write(crc_with_size(head, target, (size_t)(pen.at - target)), pen.at);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memcpy(target, head, SIZE_FIELD);
}

/* PendingRecord for usual values. For all other values the Python twin creates the object, or raises.
 *
 * Everything here runs under the GIL, so a pending record needs no lock.
 */

/* The parameters, in the order of the Python twin. */
enum {
    TOPIC,
    QUEUE_ID,
    BODY,
    PROPERTIES,
    TAGS_CODE,
    SYS_FLAG,
    FLAG,
    BORN_TIMESTAMP_MS,
    BORN_HOST,
    STORE_HOST,
    RECONSUME_TIMES,
    PREPARED_TRANSACTION_OFFSET,
    RECORD_CRC,
    PARAMETERS
};

/* record: `size_bytes` bytes. */
typedef struct {
    PyObject_HEAD
    PyObject *properties;
    uint8_t *record;
    Py_ssize_t size_bytes;
    int64_t tags_code;
    char takes_queue_offset, record_crc;
} PendingRecord;

static bool take_hosts(PyObject *born, PyObject *store, struct record_values *values)
{
    if (!py_to_host(born, &values->born_host))
        return false;
    values->store_host = values->born_host;
    return born == store || py_to_host(store, &values->store_host);
}

/* Reads all parameters but the body; returns false for values that the twin must handle. */
static bool take_values(PyObject **given, struct record_values *values, int64_t *tags_code)
{
    values->record_crc = given[RECORD_CRC] == Py_True;
    return (values->record_crc || given[RECORD_CRC] == Py_False) &&
           py_to_bytes(given[TOPIC], &values->topic) && py_to_bytes(given[PROPERTIES], &values->properties) &&
           py_to_i64(given[TAGS_CODE], tags_code) && py_to_i32(given[QUEUE_ID], &values->queue_id) &&
           py_to_i32(given[SYS_FLAG], &values->sys_flag) && py_to_i32(given[FLAG], &values->flag) &&
           py_to_i64(given[BORN_TIMESTAMP_MS], &values->born_timestamp_ms) &&
           take_hosts(given[BORN_HOST], given[STORE_HOST], values) &&
           py_to_i32(given[RECONSUME_TIMES], &values->reconsume_times) &&
           py_to_i64(given[PREPARED_TRANSACTION_OFFSET], &values->prepared_transaction_offset);
}

static PyObject *new_pending(PyTypeObject *type, const struct record_values *values, PyObject *properties,
                             int64_t tags_code)
{
    PendingRecord *self = object_new(type);
    if (!self)
        return NULL;
    self->size_bytes = (Py_ssize_t)record_size(values);
    self->record = PyMem_Malloc((size_t)self->size_bytes);
    if (!self->record) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    struct pen pen = {self->record};
    put_head(&pen, values);
    put_rest(&pen, values->topic, values->body, values->properties, values->record_crc);
    self->properties = Py_NewRef(properties);
    self->tags_code = tags_code;
    self->takes_queue_offset = takes_queue_offset(values->sys_flag);
    self->record_crc = values->record_crc;
    return (PyObject *)self;
}

/* Creates the pending record if all values are usual; otherwise sets *is_usual to false. */
static PyObject *make(PyTypeObject *type, PyObject **given, bool *is_usual)
{
    struct record_values values;
    Py_buffer body;
    int64_t tags_code;
    *is_usual = false;
    if (!take_values(given, &values, &tags_code) || PyObject_GetBuffer(given[BODY], &body, PyBUF_SIMPLE) < 0)
        return NULL;
    values.body = span_in(&body);
    PyObject *self = NULL;
    *is_usual = record_shares_usual(&values) &&
                record_owns_usual(values.body, values.properties, values.record_crc);
    if (*is_usual)
        self = new_pending(type, &values, given[PROPERTIES], tags_code);
    PyBuffer_Release(&body);
    return self;
}

static PyObject *call_twin(PyObject *args, PyObject *keywords)
{
    PyObject *module = PyImport_ImportModule("seglog.storage.kernels.pending_record");
    PyObject *twin = module ? PyObject_GetAttrString(module, "PythonPendingRecord") : NULL;
    PyObject *self = twin ? PyObject_Call(twin, args, keywords) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(twin);
    return self;
}

static PyObject *pending_record_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *given[PARAMETERS];
    if (PyTuple_Size(args) != PARAMETERS || (keywords && PyDict_Size(keywords)))
        return call_twin(args, keywords);
    for (int i = 0; i < PARAMETERS; i++)
        given[i] = PyTuple_GetItem(args, i);
    bool is_usual;
    PyObject *self = make(type, given, &is_usual);
    if (is_usual)
        return self;
    PyErr_Clear();
    return call_twin(args, keywords);
}

static void pending_record_dealloc(PyObject *object)
{
    PendingRecord *self = (PendingRecord *)object;
    PyMem_Free(self->record);
    Py_XDECREF(self->properties);
    object_free(object);
}

/* Writes the fields that are known only under the append lock, and the CRC property last, because it covers
 * them. */
static void place_record(const PendingRecord *self, int64_t queue_offset, int64_t phy_offset,
                         int64_t store_timestamp_ms)
{
    uint8_t *record = self->record;
    write_i64(record + SEGLOG_HEADS_0_QUEUE_OFFSET_AT, queue_offset);
    write_i64(record + SEGLOG_HEADS_0_PHY_OFFSET_AT, phy_offset);
    write_i64(record + record_store_timestamp_at(read_i32(record + SEGLOG_HEADS_0_SYS_FLAG_AT)),
              store_timestamp_ms);
    size_t covered = (size_t)self->size_bytes - SEGLOG_CRC_PROPERTY_BYTES;
    if (self->record_crc)
        crc_property_write(crc32_of(span_of(record, covered)), record + covered);
}

/* Copies a record to memory that readers may see, its size field last. */
static void publish(const uint8_t *record, size_t size, uint8_t *target)
{
    memcpy(target + SIZE_FIELD, record + SIZE_FIELD, size - SIZE_FIELD);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memcpy(target, record, SIZE_FIELD);
}

/* write(buffer, at, queue_offset, phy_offset, store_timestamp_ms): the size field last, as in record_write(). */
static PyObject *pending_record_write(PyObject *object, PyObject *args)
{
    PendingRecord *self = (PendingRecord *)object;
    PyObject *target;
    Py_buffer buffer;
    Py_ssize_t at;
    long long queue_offset, phy_offset, store_timestamp_ms;
    if (!PyArg_ParseTuple(args, "OnLLL", &target, &at, &queue_offset, &phy_offset, &store_timestamp_ms))
        return NULL;
    place_record(self, queue_offset, phy_offset, store_timestamp_ms);
    if (PyObject_GetBuffer(target, &buffer, PyBUF_WRITABLE) < 0)
        return NULL;
    bool fits = at >= 0 && at <= buffer.len && self->size_bytes <= buffer.len - at;
    if (fits)
        publish(self->record, (size_t)self->size_bytes, (uint8_t *)buffer.buf + at);
    else
        PyErr_Format(PyExc_ValueError, "%zd bytes at %zd do not fit a buffer of %zd", self->size_bytes, at,
                     buffer.len);
    PyBuffer_Release(&buffer);
    return fits ? Py_NewRef(Py_None) : NULL;
}

/* Ignores the store time: records of the delay topic, whose codes depend on it, are left to the twin. */
static PyObject *pending_record_tags_code(PyObject *self, PyObject *Py_UNUSED(store_timestamp_ms))
{
    return PyLong_FromLongLong(((PendingRecord *)self)->tags_code);
}

static PyMemberDef members[] = {
    {"properties", T_OBJECT_EX, offsetof(PendingRecord, properties), READONLY, NULL},
    {"size_bytes", T_PYSSIZET, offsetof(PendingRecord, size_bytes), READONLY, NULL},
    {"takes_queue_offset", T_BOOL, offsetof(PendingRecord, takes_queue_offset), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef methods[] = {
    {"write", pending_record_write, METH_VARARGS, NULL},
    {"unit_tags_code", pending_record_tags_code, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)pending_record_new},
    {Py_tp_dealloc, (void *)pending_record_dealloc},
    {Py_tp_members, members},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "seglog.storage.kernels._native.PendingRecord",
    .basicsize = sizeof(PendingRecord),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

int pending_record_add(PyObject *module)
{
    return type_add(module, &spec, "PendingRecord") ? 0 : -1;
}
