#include "lane_type.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

#include "arguments.h"
#include "lane.h"
#include "take.h"

/* What the lane calls or gives out, by the names that LaneOwner has for it. */
enum known {
    WAITING,
    NOTIFY,
    ENSURE,
    LEND,
    SLOW_PUT,
    PUT_RESULT,
    STORE_HOST_OF_ALL,
    USUAL_DURABILITY,
    SYNC,
    KNOWN
};

static const char *const known_names[KNOWN] = {
    [WAITING] = "waiting",
    [NOTIFY] = "notify",
    [ENSURE] = "ensure",
    [LEND] = "lend",
    [SLOW_PUT] = "put",
    [PUT_RESULT] = "put_result",
    [STORE_HOST_OF_ALL] = "store_host",
    [USUAL_DURABILITY] = "durability",
    [SYNC] = "sync",
};

enum { RESULT_FIELDS = 8 };

typedef struct {
    PyObject_HEAD
    struct lane lane;
    PyObject *known[KNOWN];
    allocfunc new_result;
    struct host store_host;
    bool record_crc;
} Lane;

static PyObject *zero;

/* One call: what it is to append and how its result is made. */
struct call {
    struct append append;
    PyObject *given[ARGUMENTS];
    PyObject *queue_id, *durability, *result;
    bool is_sync;
};

/* Reads what all calls have. */
static enum outcome begin(Lane *self, struct call *call)
{
    PyObject **given = call->given;
    memset(&call->append, 0, sizeof call->append);
    call->append.topic = given[TOPIC];
    if (self->lane.is_closed)
        return ODD;
    call->queue_id = given[QUEUE_ID] ? given[QUEUE_ID] : zero;
    call->durability = given[DURABILITY];
    if (!call->durability || call->durability == Py_None)
        call->durability = self->known[USUAL_DURABILITY];
    else if (!Py_IS_TYPE(call->durability, Py_TYPE(self->known[SYNC])))
        return ODD;
    call->is_sync = call->durability == self->known[SYNC];
    struct draft_values *values = &call->append.values;
    values->record_crc = self->record_crc;
    values->born_host = values->store_host = self->store_host;
    if (!PyLong_CheckExact(call->queue_id) || !take_i32(call->queue_id, &values->queue_id))
        return ODD;
    return lane_find(&self->lane, &call->append);
}

/* A PutResult without values: memory first, for it may be the garbage collector's turn. */
static PyObject *new_result(Lane *self)
{
    return self->new_result((PyTypeObject *)self->known[PUT_RESULT], RESULT_FIELDS);
}

static bool set_number(PyObject *result, Py_ssize_t field, int64_t number)
{
    PyObject *value = PyLong_FromLongLong(number);
    return value && PyTuple_SetItem(result, field, value) == 0;
}

static bool fill_result(Lane *self, const struct call *call)
{
    const struct append *append = &call->append;
    const struct message *message = self->lane.batch.list;
    int64_t phy_offset = self->lane.log->last_phy_offset, queue_offset = append->queue->max_offset - 1;
    int64_t size = (int64_t)message->record_size;
    PyTuple_SetItem(call->result, 0, Py_NewRef(append->topic));
    PyTuple_SetItem(call->result, 1, Py_NewRef(call->queue_id));
    PyTuple_SetItem(call->result, 6, Py_NewRef(self->known[STORE_HOST_OF_ALL]));
    PyTuple_SetItem(call->result, 7, Py_NewRef(call->durability));
    return set_number(call->result, 2, queue_offset) && set_number(call->result, 3, phy_offset) &&
           set_number(call->result, 4, size) && set_number(call->result, 5, append->store_timestamp_ms);
}

static bool is_called(PyObject *answer)
{
    Py_XDECREF(answer);
    return answer;
}

/* Wakes who waits for the queue, and waits for the disk where that is wanted. */
static bool acknowledge(Lane *self, const struct call *call, int64_t end)
{
    PyObject **known = self->known;
    if (PyDict_Size(known[WAITING]) > 0 &&
        !is_called(PyObject_CallFunctionObjArgs(known[NOTIFY], call->append.topic, call->queue_id, NULL)))
        return false;
    return !call->is_sync || is_called(PyObject_CallFunction(known[ENSURE], "L", (long long)end));
}

/* Has the twin do it, and the windows opened that were lacking. */
static PyObject *leave(Lane *self, struct call *call, enum outcome outcome, PyObject *slow,
                       PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    Py_CLEAR(call->result);
    if (outcome == FAILED)
        return NULL;
    PyErr_Clear();
    if (!slow)
        return PyErr_Format(PyExc_RuntimeError, "the store of this lane is no more");
    PyObject *answer = arguments_pass(slow, args, count, names);
    if (answer && outcome == LACKING && !self->lane.is_closed &&
        !is_called(PyObject_CallFunctionObjArgs(self->known[LEND], call->append.topic, call->queue_id, NULL)))
        Py_CLEAR(answer);
    return answer;
}

static enum outcome put_one(Lane *self, struct call *call)
{
    struct lane *lane = &self->lane;
    PyObject **given = call->given;
    enum outcome outcome = lane_prepare(lane, &call->append, false, call->is_sync);
    if (outcome != DONE)
        return outcome;
    batch_clear(&lane->batch);
    struct message *message = batch_add(&lane->batch);
    if (!message || !batch_take_body(given[BODY], &message->body) ||
        (given[FLAG] && !take_i32(given[FLAG], &message->flag)) ||
        !batch_put_properties(&lane->batch, given[TAGS], given[KEYS], given[PROPERTIES]))
        return ODD;
    return lane_append(lane, &call->append);
}

static PyObject *lane_put(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const struct signature signature = {2, {TOPIC, BODY}};
    Lane *self = (Lane *)object;
    struct call call;
    call.result = NULL;
    enum outcome outcome = ODD;
    if (arguments_sort(&signature, args, count, names, call.given))
        outcome = begin(self, &call);
    if (outcome == DONE) {
        call.result = new_result(self);
        outcome = call.result ? put_one(self, &call) : FAILED;
    }
    if (outcome != DONE)
        return leave(self, &call, outcome, self->known[SLOW_PUT], args, count, names);
    int64_t end = self->lane.log->end_phy_offset;
    if (!fill_result(self, &call) || !acknowledge(self, &call, end))
        Py_CLEAR(call.result);
    return call.result;
}

static PyObject *lane_add_queue(PyObject *object, PyObject *args)
{
    PyObject *topic, *tip;
    int queue_id;
    if (!PyArg_ParseTuple(args, "UiO", &topic, &queue_id, &tip))
        return NULL;
    QueueTip *queue = as_queue_tip(tip);
    if (!queue || lane_add(&((Lane *)object)->lane, topic, queue_id, queue) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *lane_forget_all(PyObject *object, PyObject *Py_UNUSED(nothing))
{
    lane_forget(&((Lane *)object)->lane);
    Py_RETURN_NONE;
}

static PyObject *lane_close(PyObject *object, PyObject *Py_UNUSED(nothing))
{
    Lane *self = (Lane *)object;
    self->lane.is_closed = true;
    lane_forget(&self->lane);
    Py_RETURN_NONE;
}

/* Takes over a bool or a number of the owner. */
static bool take_attribute(PyObject *owner, const char *name, int64_t *number)
{
    PyObject *value = PyObject_GetAttrString(owner, name);
    bool is_taken = value && take_i64(value, number);
    Py_XDECREF(value);
    return is_taken;
}

/* The lane reads the system's clock itself. */
static bool take_clock(Lane *self, PyObject *owner)
{
    int64_t is_system;
    if (!take_attribute(owner, "has_system_clock", &is_system))
        return false;
    self->lane.clock = is_system ? NULL : PyObject_GetAttrString(owner, "clock");
    return is_system || self->lane.clock;
}

static bool take_owner(Lane *self, PyObject *tip, PyObject *owner)
{
    int64_t record_crc, max_body_bytes;
    LogTip *log = as_log_tip(tip);
    if (!log)
        return false;
    self->lane.log = (LogTip *)Py_NewRef((PyObject *)log);
    self->lane.topics = PyDict_New();
    for (int i = 0; i < KNOWN; i++) {
        self->known[i] = PyObject_GetAttrString(owner, known_names[i]);
        if (!self->known[i])
            return false;
    }
    if (!self->lane.topics || !take_clock(self, owner) || !PyDict_Check(self->known[WAITING]) ||
        !take_host(self->known[STORE_HOST_OF_ALL], &self->store_host) ||
        !take_attribute(owner, "record_crc", &record_crc) ||
        !take_attribute(owner, "max_body_bytes", &max_body_bytes))
        return false;
    self->record_crc = record_crc;
    self->lane.max_body_bytes = max_body_bytes > 0 ? (size_t)max_body_bytes : 0;
    self->new_result = (allocfunc)PyType_GetSlot((PyTypeObject *)self->known[PUT_RESULT], Py_tp_alloc);
    return self->new_result != NULL;
}

static PyObject *lane_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *tip, *owner;
    if ((keywords && PyDict_Size(keywords)) || !PyArg_ParseTuple(args, "OO", &tip, &owner))
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "a lane has two parameters by place");
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Lane *self = (Lane *)allocate(type, 0);
    if (self && !take_owner(self, tip, owner)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "no owner of a lane");
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static int lane_traverse(PyObject *object, visitproc visit, void *arg)
{
    Lane *self = (Lane *)object;
    Py_VISIT(Py_TYPE(object));
    for (int i = 0; i < KNOWN; i++) {
        Py_VISIT(self->known[i]);
    }
        Py_VISIT(self->lane.topics);
    Py_VISIT(self->lane.clock);
    return 0;
}

static int lane_clear(PyObject *object)
{
    Lane *self = (Lane *)object;
    self->lane.is_closed = true;
    lane_forget(&self->lane);
    for (int i = 0; i < KNOWN; i++)
        Py_CLEAR(self->known[i]);
    Py_CLEAR(self->lane.clock);
    return 0;
}

static void lane_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    Lane *self = (Lane *)object;
    PyObject_GC_UnTrack(object);
    lane_clear(object);
    Py_XDECREF((PyObject *)self->lane.log);
    Py_XDECREF(self->lane.topics);
    batch_free(&self->lane.batch);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

#define FAST(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef methods[] = {
    {"put", FAST(lane_put), METH_FASTCALL | METH_KEYWORDS, NULL},
    {"add", lane_add_queue, METH_VARARGS, NULL},
    {"forget", lane_forget_all, METH_NOARGS, NULL},
    {"close", lane_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)lane_new},
    {Py_tp_dealloc, (void *)lane_dealloc},
    {Py_tp_traverse, (void *)lane_traverse},
    {Py_tp_clear, (void *)lane_clear},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "seglog.storage.kernels._native.Lane",
    .basicsize = sizeof(Lane),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

int lane_type_add(PyObject *module)
{
    zero = PyLong_FromLong(0);
    PyObject *type = PyType_FromSpec(&spec);
    if (!zero || !type || !arguments_prepare() || lane_topic_add(module) < 0 ||
        PyModule_AddObjectRef(module, "Lane", type) < 0) {
        Py_XDECREF(type);
        return -1;
    }
    Py_DECREF(type);
    return 0;
}
