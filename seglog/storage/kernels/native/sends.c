/* Sends of a broker: from the request to its response without a step in Python, for usual messages.
 *
 * seglog/broker/sends/usual_sends.py defines the usual send. All other sends are left to the handlers before
 * anything was done, so that all refusals are in one place.
 */

#include "fast_path.h"
#include "record.h"

/* The Python objects of the broker that sends use; its rules have an attribute for each. */
enum part { TOPIC_OF, QUEUES_OF, DISK, SEND_CODES, EXT, SUCCESS, ASYNC_TEXT, STAMP, PARTS };

/* Classes of requests and responses. */
enum kind { REQUEST, ASKED, PEER, RESPONSE, ANSWERED, KINDS };

/* Attributes of their objects, each in a slot: first those that are read of a send, then those of its response. */
#define READ_OF(each)                                                                                        \
    each(REQUEST, code) each(REQUEST, header) each(REQUEST, body) each(ASKED, topic) each(ASKED, queue_id)   \
        each(ASKED, sys_flag) each(ASKED, born_timestamp_ms) each(ASKED, flag) each(ASKED, properties)       \
            each(ASKED, reconsume_times) each(PEER, host)
#define FILLED_OF(each)                                                                                      \
    each(RESPONSE, code) each(RESPONSE, header) each(RESPONSE, body) each(RESPONSE, remark)                  \
        each(RESPONSE, ext) each(ANSWERED, msg_id) each(ANSWERED, queue_id) each(ANSWERED, queue_offset)     \
            each(ANSWERED, transaction_id) each(ANSWERED, batch_uniq_id) each(ANSWERED, durability)
#define ENUM_NAME(kind, name) kind##_##name,
#define FIELD_NAME(kind, name) {kind, #name},

enum field { READ_OF(ENUM_NAME) READ_FIELDS, BEFORE_FILLED = READ_FIELDS - 1, FILLED_OF(ENUM_NAME) FIELDS };

static const char *const part_names[PARTS] = {
    [TOPIC_OF] = "topic_of",     [QUEUES_OF] = "queues_of", [DISK] = "disk",
    [SEND_CODES] = "send_codes", [EXT] = "ext",             [SUCCESS] = "success",
    [ASYNC_TEXT] = "async_text", [STAMP] = "stamp",
};

static const char *const kind_names[KINDS] = {
    [REQUEST] = "request", [ASKED] = "asked",       [PEER] = "peer",
    [RESPONSE] = "response", [ANSWERED] = "answered",
};

static const struct {
    enum kind kind;
    const char *name;
} field_names[FIELDS] = {READ_OF(FIELD_NAME) FILLED_OF(FIELD_NAME)};

/* The descriptor of an attribute that a class keeps in a slot. */
struct slot {
    PyObject *descriptor;
    descrgetfunc get;
    descrsetfunc set;
};

typedef struct {
    PyObject_HEAD
    FastPath *path; /* NULL after the garbage collector has cleared it */
    PyObject *parts[PARTS], *kinds[KINDS];
    struct slot fields[FIELDS];
    PyObject *last_topic; /* the settings of the last topic, whose usual queues are counted in last_queues */
    int32_t last_queues;
    long codes[2];
    uint8_t completed[SEGLOG_MAX_PROPERTIES_BYTES];
} UsualSends;

static PyObject *shut_name;

/* The properties of a message that matter to a broker. */
struct said {
    struct span unique_key, tag;
    bool waits;
};

static bool is_name(struct span name, const char *text, size_t size)
{
    return name.size == size && memcmp(name.at, text, size) == 0;
}

#define IS(name, text) is_name(name, text, sizeof(text) - 1)

/* Whether a property with a value makes the handlers responsible for the message. */
static bool is_special(struct span name)
{
    switch (name.at[0]) {
    case 'C':
        return IS(name, "CLUSTER");
    case 'M':
        return IS(name, "MSG_REGION");
    case 'T':
        return IS(name, "TRACE_ON") || IS(name, "TRAN_MSG") || IS(name, "TIMER_DELAY_SEC") ||
               IS(name, "TIMER_DELAY_MS") || IS(name, "TIMER_DELIVER_MS");
    case 'P':
        return IS(name, "POP_CK");
    case 'D':
        return IS(name, "DELAY");
    default:
        return false;
    }
}

/* Reads the properties of a request; returns false if the handlers must read them. */
static bool read_properties(struct span raw, struct said *said)
{
    memset(said, 0, sizeof *said);
    said->waits = true;
    while (raw.size) {
        const uint8_t *end = memchr(raw.at, SEGLOG_ENTRY_END, raw.size);
        size_t size = end ? (size_t)(end - raw.at) : raw.size;
        const uint8_t *behind = memchr(raw.at, SEGLOG_NAME_END, size);
        if (behind && behind > raw.at && behind + 1 < raw.at + size) {
            struct span name = span_of(raw.at, (size_t)(behind - raw.at));
            struct span value = span_of(behind + 1, size - name.size - 1);
            if (is_special(name))
                return false;
            if (IS(name, "UNIQ_KEY"))
                said->unique_key = value;
            else if (IS(name, "TAGS"))
                said->tag = value;
            else if (IS(name, "WAIT"))
                said->waits = !IS(value, "false");
        }
        raw = span_after(raw, end ? size + 1 : size);
    }
    return said->unique_key.size > 0; /* without a unique key the handlers give the message one */
}

/* Returns the properties of the request with those of the broker behind them; empty if they are too long. */
static struct span complete(UsualSends *self, struct span raw)
{
    struct span stamp;
    size_t size = raw.size;
    if (!py_to_bytes(self->parts[STAMP], &stamp) || raw.size + 1 + stamp.size > sizeof self->completed)
        return span_of(NULL, 0);
    memcpy(self->completed, raw.at, raw.size);
    if (raw.at[raw.size - 1] != SEGLOG_ENTRY_END)
        self->completed[size++] = SEGLOG_ENTRY_END;
    memcpy(self->completed + size, stamp.at, stamp.size);
    return span_of(self->completed, size + stamp.size);
}

static PyObject *slot_get(const struct slot *slot, PyObject *object)
{
    return slot->get(slot->descriptor, object, (PyObject *)Py_TYPE(object));
}

/* Sets an attribute of a new object; takes over the reference. */
static bool slot_fill(const struct slot *slot, PyObject *object, PyObject *value)
{
    bool is_set = value && slot->set(slot->descriptor, object, value) == 0;
    Py_XDECREF(value);
    return is_set;
}

/* One send. */
struct sent {
    PyObject *fields[READ_FIELDS], *topic, *answer, *header;
    struct span raw, completed, body;
    struct said said;
    struct append append;
    int32_t flag;
};

static bool take_fields(UsualSends *self, struct sent *sent, PyObject *request, enum field first,
                        enum field behind)
{
    for (int i = (int)first; i < (int)behind; i++) {
        sent->fields[i] = slot_get(&self->fields[i], request);
        if (!sent->fields[i])
            return false;
    }
    return true;
}

static bool is_send(const UsualSends *self, PyObject *code)
{
    long number = PyLong_Check(code) ? PyLong_AsLong(code) : -1;
    return number == self->codes[0] || number == self->codes[1];
}

/* Reads the request; returns false if it is not usual. */
static bool take_request(UsualSends *self, struct sent *sent, PyObject *request, PyObject *peer)
{
    PyObject *const *fields = sent->fields;
    if (!Py_IS_TYPE(request, (PyTypeObject *)self->kinds[REQUEST]) ||
        !Py_IS_TYPE(peer, (PyTypeObject *)self->kinds[PEER]) ||
        !take_fields(self, sent, request, REQUEST_code, REQUEST_header) ||
        !is_send(self, fields[REQUEST_code]) ||
        !take_fields(self, sent, request, REQUEST_header, ASKED_topic) ||
        !Py_IS_TYPE(fields[REQUEST_header], (PyTypeObject *)self->kinds[ASKED]) ||
        !take_fields(self, sent, fields[REQUEST_header], ASKED_topic, PEER_host) ||
        !take_fields(self, sent, peer, PEER_host, READ_FIELDS))
        return false;
    struct record_values *values = &sent->append.values;
    sent->append.topic = fields[ASKED_topic];
    values->record_crc = self->path->record_crc;
    values->store_host = self->path->store_host;
    return PyUnicode_CheckExact(fields[ASKED_topic]) &&
           (fields[REQUEST_body] == Py_None || batch_take_body(fields[REQUEST_body], &sent->body)) &&
           py_to_i32(fields[ASKED_queue_id], &values->queue_id) && py_to_i32(fields[ASKED_sys_flag], &values->sys_flag) &&
           takes_queue_offset(values->sys_flag) && !(values->sys_flag & SEGLOG_INNER_BATCH) &&
           py_to_i64(fields[ASKED_born_timestamp_ms], &values->born_timestamp_ms) &&
           py_to_i32(fields[ASKED_flag], &sent->flag) &&
           py_to_i32(fields[ASKED_reconsume_times], &values->reconsume_times) &&
           py_to_host(fields[PEER_host], &values->born_host) && py_to_bytes(fields[ASKED_properties], &sent->raw) &&
           read_properties(sent->raw, &sent->said) &&
           (!sent->said.waits || self->path->known[USUAL_DURABILITY] != self->path->known[SYNC]);
}

/* Returns the number of usual queues of a topic; -1 with an exception. */
static int32_t queues_of(UsualSends *self, PyObject *name, PyObject *topic)
{
    if (topic == self->last_topic)
        return self->last_queues;
    PyObject *count = PyObject_CallFunctionObjArgs(self->parts[QUEUES_OF], name, topic, NULL);
    int32_t queues;
    bool is_taken = count && py_to_i32(count, &queues);
    Py_XDECREF(count);
    if (!is_taken)
        return -1;
    PyObject *old = self->last_topic;
    self->last_topic = Py_NewRef(topic);
    self->last_queues = queues;
    Py_XDECREF(old);
    return queues;
}

/* Whether topic and disk accept the message; runs Python code. */
static bool is_taken_in(UsualSends *self, struct sent *sent)
{
    sent->topic = PyObject_CallFunctionObjArgs(self->parts[TOPIC_OF], sent->append.topic, NULL);
    if (!sent->topic || sent->topic == Py_None)
        return false;
    int32_t queues = queues_of(self, sent->append.topic, sent->topic);
    int32_t queue_id = sent->append.values.queue_id;
    if (queue_id < 0 || queue_id >= queues)
        return false;
    PyObject *is_shut = PyObject_GetAttr(self->parts[DISK], shut_name);
    Py_XDECREF(is_shut);
    return is_shut == Py_False;
}

/* Creates the objects of the response before the append: the garbage collector may run here, but not later. */
static bool make_answer(UsualSends *self, struct sent *sent)
{
    sent->answer = object_new((PyTypeObject *)self->kinds[RESPONSE]);
    sent->header = sent->answer ? object_new((PyTypeObject *)self->kinds[ANSWERED]) : NULL;
    return sent->header;
}

static enum outcome append_one(UsualSends *self, struct sent *sent)
{
    FastPath *path = self->path;
    enum outcome outcome = fast_path_prepare(path, &sent->append, true, false);
    if (outcome != DONE)
        return outcome;
    batch_clear(&path->batch);
    struct message *message = batch_add(&path->batch);
    struct span completed = complete(self, sent->raw);
    if (!message || !completed.size || properties_hold(completed, TEXT(SEGLOG_INNER_NAMES)) ||
        !batch_raw_properties(&path->batch, completed))
        return FALLBACK;
    message->body = sent->body;
    message->flag = sent->flag;
    message->tags_code = (int32_t)java_hash(0, sent->said.tag);
    return fast_path_write(path, &sent->append, false);
}

static PyObject *message_id(const struct host *host, int64_t phy_offset)
{
    static const char digits[] = "0123456789ABCDEF";
    uint8_t bytes[SEGLOG_IPV6_BYTES + 4 + 8];
    char text[2 * sizeof bytes];
    size_t size = host->address_size;
    memcpy(bytes, host->address, size);
    write_u32(bytes + size, (uint32_t)host->port);
    write_i64(bytes + size + 4, phy_offset);
    size += 4 + 8;
    for (size_t i = 0; i < size; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 0xF];
    }
    return PyUnicode_FromStringAndSize(text, (Py_ssize_t)(2 * size));
}

/* Fills the response with the place of the message. */
static bool fill_answer(UsualSends *self, const struct sent *sent)
{
    const struct slot *fields = self->fields;
    const FastPath *path = self->path;
    PyObject *const *parts = self->parts, *answer = sent->answer, *header = sent->header;
    int64_t queue_offset = sent->append.queue->max_offset - 1;
    struct span key = sent->said.unique_key;
    return slot_fill(&fields[ANSWERED_msg_id], header, message_id(&path->store_host, path->log->last_phy_offset)) &&
           slot_fill(&fields[ANSWERED_queue_id], header, Py_NewRef(sent->fields[ASKED_queue_id])) &&
           slot_fill(&fields[ANSWERED_queue_offset], header, PyLong_FromLongLong(queue_offset)) &&
           slot_fill(&fields[ANSWERED_transaction_id], header,
                     PyUnicode_DecodeUTF8((const char *)key.at, (Py_ssize_t)key.size, "replace")) &&
           slot_fill(&fields[ANSWERED_batch_uniq_id], header, Py_NewRef(Py_None)) &&
           slot_fill(&fields[ANSWERED_durability], header, Py_NewRef(parts[ASYNC_TEXT])) &&
           slot_fill(&fields[RESPONSE_code], answer, Py_NewRef(parts[SUCCESS])) &&
           slot_fill(&fields[RESPONSE_header], answer, Py_NewRef(header)) &&
           slot_fill(&fields[RESPONSE_body], answer, Py_NewRef(Py_None)) &&
           slot_fill(&fields[RESPONSE_remark], answer, Py_NewRef(Py_None)) &&
           slot_fill(&fields[RESPONSE_ext], answer, Py_NewRef(parts[EXT]));
}

/* Wakes the waiters of the queue. */
static bool notify(const FastPath *path, const struct sent *sent)
{
    if (PyDict_Size(path->known[WAITING]) <= 0)
        return true;
    PyObject *told = PyObject_CallFunctionObjArgs(path->known[NOTIFY], sent->append.topic,
                                                  sent->fields[ASKED_queue_id], NULL);
    Py_XDECREF(told);
    return told;
}

static enum outcome send_one(UsualSends *self, struct sent *sent, PyObject *request, PyObject *peer)
{
    if (!self->path || self->path->is_closed || PyList_Size(self->path->known[GATHERED]) > 0 ||
        !take_request(self, sent, request, peer) || !is_taken_in(self, sent))
        return FALLBACK; /* gathered puts were called before: Python writes them first */
    enum outcome outcome = fast_path_find(self->path, &sent->append);
    if (outcome != DONE)
        return outcome;
    if (!make_answer(self, sent))
        return FAILED;
    outcome = append_one(self, sent);
    if (outcome != DONE)
        return outcome;
    return fill_answer(self, sent) && notify(self->path, sent) ? DONE : FAILED;
}

static void release(struct sent *sent)
{
    for (int i = 0; i < READ_FIELDS; i++)
        Py_XDECREF(sent->fields[i]);
    Py_XDECREF(sent->topic);
    Py_XDECREF(sent->answer);
    Py_XDECREF(sent->header);
}

static PyObject *try_send(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    UsualSends *self = (UsualSends *)object;
    struct sent sent;
    if (count != 2 || names)
        return PyErr_Format(PyExc_TypeError, "try_send has two parameters by place");
    memset(&sent, 0, sizeof sent);
    enum outcome outcome = send_one(self, &sent, args[0], args[1]);
    PyObject *answer = outcome == DONE ? Py_NewRef(sent.answer) : NULL;
    if (outcome == NO_WINDOW)
        self->path->lacks_window = 1;
    /* An error of called Python code is dropped: the handlers meet it again. An exception that ends the thread,
     * such as KeyboardInterrupt, is raised here. */
    bool is_raised = PyErr_Occurred() && (outcome == FAILED || !PyErr_ExceptionMatches(PyExc_Exception));
    if (!answer && !is_raised)
        PyErr_Clear();
    release(&sent);
    return answer || is_raised ? answer : Py_NewRef(Py_None);
}

static bool take_slots(UsualSends *self)
{
    for (int i = 0; i < FIELDS; i++) {
        struct slot *slot = &self->fields[i];
        PyObject *kind = self->kinds[field_names[i].kind];
        slot->descriptor = PyObject_GetAttrString(kind, field_names[i].name);
        if (!slot->descriptor)
            return false;
        slot->get = (descrgetfunc)PyType_GetSlot(Py_TYPE(slot->descriptor), Py_tp_descr_get);
        slot->set = (descrsetfunc)PyType_GetSlot(Py_TYPE(slot->descriptor), Py_tp_descr_set);
        if (!slot->get || !slot->set) {
            PyErr_Format(PyExc_TypeError, "%s is in no slot", field_names[i].name);
            return false;
        }
    }
    return true;
}

static bool take_rules(UsualSends *self, PyObject *rules)
{
    for (int i = 0; i < PARTS; i++)
        if (!(self->parts[i] = PyObject_GetAttrString(rules, part_names[i])))
            return false;
    for (int i = 0; i < KINDS; i++) {
        self->kinds[i] = PyObject_GetAttrString(rules, kind_names[i]);
        if (!self->kinds[i])
            return false;
        if (!PyType_Check(self->kinds[i])) {
            PyErr_Format(PyExc_TypeError, "%s is no class", kind_names[i]);
            return false;
        }
    }
    if (!PyTuple_Check(self->parts[SEND_CODES])) {
        PyErr_SetString(PyExc_TypeError, "codes are a tuple");
        return false;
    }
    return take_slots(self) &&
           PyArg_ParseTuple(self->parts[SEND_CODES], "ll", &self->codes[0], &self->codes[1]);
}

static PyObject *sends_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *path, *rules;
    if (!has_no_keywords(keywords, "UsualSends") || !PyArg_ParseTuple(args, "OO", &path, &rules))
        return NULL;
    if (!as_fast_path(path))
        return PyErr_Format(PyExc_TypeError, "no fast path");
    UsualSends *self = object_new(type);
    if (!self)
        return NULL;
    self->path = (FastPath *)Py_NewRef(path);
    if (!take_rules(self, rules))
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int sends_traverse(PyObject *object, visitproc visit, void *arg)
{
    UsualSends *self = (UsualSends *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT((PyObject *)self->path);
    Py_VISIT(self->last_topic);
    for (int i = 0; i < PARTS; i++)
        Py_VISIT(self->parts[i]);
    for (int i = 0; i < KINDS; i++)
        Py_VISIT(self->kinds[i]);
    for (int i = 0; i < FIELDS; i++)
        Py_VISIT(self->fields[i].descriptor);
    return 0;
}

static int sends_clear(PyObject *object)
{
    UsualSends *self = (UsualSends *)object;
    PyObject *path = (PyObject *)self->path;
    self->path = NULL;
    Py_XDECREF(path);
    Py_CLEAR(self->last_topic);
    for (int i = 0; i < PARTS; i++)
        Py_CLEAR(self->parts[i]);
    for (int i = 0; i < KINDS; i++)
        Py_CLEAR(self->kinds[i]);
    for (int i = 0; i < FIELDS; i++)
        Py_CLEAR(self->fields[i].descriptor);
    return 0;
}

static void sends_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    sends_clear(object);
    object_free(object);
}

static PyMethodDef methods[] = {
    FAST_METHOD("try_send", try_send),
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)sends_new},
    {Py_tp_dealloc, (void *)sends_dealloc},
    {Py_tp_traverse, (void *)sends_traverse},
    {Py_tp_clear, (void *)sends_clear},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "seglog.storage.kernels._native.UsualSends",
    .basicsize = sizeof(UsualSends),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

int usual_sends_add(PyObject *module)
{
    shut_name = PyUnicode_InternFromString("is_shut");
    return shut_name && type_add(module, &spec, "UsualSends") ? 0 : -1;
}
