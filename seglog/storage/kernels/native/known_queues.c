#include "known_queues.h"

#include <string.h>

enum { MAX_QUEUES = 1 << 12 };

/* The queues of one topic by number: `count` places, some of them empty. */
typedef struct {
    PyObject_HEAD
    struct known_queue *list;
    size_t count;
} TopicQueues;

static PyTypeObject *topic_type;

static void topic_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    TopicQueues *topic = (TopicQueues *)self;
    for (size_t i = 0; i < topic->count; i++) {
        Py_XDECREF((PyObject *)topic->list[i].tip);
        Py_XDECREF((PyObject *)topic->list[i].maps);
    }
    PyMem_Free(topic->list);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

PyObject *known_queues_new(void)
{
    return PyDict_New();
}

struct known_queue *known_queues_find(PyObject *queues, PyObject *topic, int64_t queue_id)
{
    TopicQueues *found = (TopicQueues *)PyDict_GetItemWithError(queues, topic);
    if (!found || queue_id < 0 || (uint64_t)queue_id >= found->count || !found->list[queue_id].tip)
        return NULL;
    return &found->list[queue_id];
}

/* The entry of a topic, made where there is none. Borrowed. */
static TopicQueues *topic_of(PyObject *queues, PyObject *name)
{
    TopicQueues *found = (TopicQueues *)PyDict_GetItemWithError(queues, name);
    if (found || PyErr_Occurred())
        return found;
    allocfunc allocate = (allocfunc)PyType_GetSlot(topic_type, Py_tp_alloc);
    PyObject *made = allocate(topic_type, 0);
    if (!made || PyDict_SetItem(queues, name, made) < 0) {
        Py_XDECREF(made);
        return NULL;
    }
    Py_DECREF(made); /* the dict holds it */
    return (TopicQueues *)made;
}

static bool has_place(TopicQueues *topic, size_t number)
{
    if (number < topic->count)
        return true;
    struct known_queue *list = PyMem_Realloc(topic->list, (number + 1) * sizeof *list);
    if (!list) {
        PyErr_NoMemory();
        return false;
    }
    memset(list + topic->count, 0, (number + 1 - topic->count) * sizeof *list);
    topic->list = list;
    topic->count = number + 1;
    return true;
}

bool known_queues_add(PyObject *queues, PyObject *topic, int64_t queue_id, QueueTip *tip, Maps *maps)
{
    if (queue_id < 0 || queue_id >= MAX_QUEUES)
        return true;
    TopicQueues *queues_of_topic = topic_of(queues, topic);
    if (!queues_of_topic || !has_place(queues_of_topic, (size_t)queue_id))
        return false;
    struct known_queue *queue = &queues_of_topic->list[queue_id];
    if (!queue->tip) {
        queue->tip = (QueueTip *)Py_NewRef((PyObject *)tip);
        queue->maps = (Maps *)Py_NewRef((PyObject *)maps);
    }
    return true;
}

int known_queues_prepare(void)
{
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, (void *)topic_dealloc},
        {0, NULL},
    };
    static PyType_Spec spec = {
        .name = "seglog.storage.kernels._native.TopicQueues",
        .basicsize = sizeof(TopicQueues),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };
    topic_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return topic_type ? 0 : -1;
}
