/* Plain reads. All other reads, and calls with wrong arguments, are passed to the Python method, which does the
 * read or raises, and registers the queue, the filter and, through Maps, the files that it opened.
 *
 * Everything here runs under the GIL. After each call that may let other threads run, everything that they
 * may have changed is looked up again.
 */

#include "fast_path.h"
#include "reads.h"

#include <time.h>

/* A queue that was read before; holds references to tail and maps. No message of the queue offsets
 * [living_from, living_to) is a tombstone.
 */
struct known_queue {
    QueueTail *tail;
    Maps *maps;
    int64_t living_from, living_to;
};

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
    TopicQueues *topic = (TopicQueues *)self;
    for (size_t i = 0; i < topic->count; i++) {
        Py_XDECREF((PyObject *)topic->list[i].tail);
        Py_XDECREF((PyObject *)topic->list[i].maps);
    }
    PyMem_Free(topic->list);
    object_free(self);
}

/* Returns a known queue; NULL without an exception for any other. Valid until other code may run. */
static struct known_queue *known_queues_find(PyObject *queues, PyObject *topic, int64_t queue_id)
{
    TopicQueues *found = (TopicQueues *)PyDict_GetItemWithError(queues, topic);
    if (!found || queue_id < 0 || (uint64_t)queue_id >= found->count || !found->list[queue_id].tail)
        return NULL;
    return &found->list[queue_id];
}

/* Returns the entry of a topic, borrowed; creates it if there is none. */
static TopicQueues *topic_of(PyObject *queues, PyObject *name)
{
    TopicQueues *found = (TopicQueues *)PyDict_GetItemWithError(queues, name);
    if (found || PyErr_Occurred())
        return found;
    PyObject *made = object_new(topic_type);
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

/* Adds a queue; does nothing for a known queue, or an unusual number. Returns false with an exception. */
static bool known_queues_add(PyObject *queues, PyObject *topic, int64_t queue_id, QueueTail *tail, Maps *maps)
{
    if (queue_id < 0 || queue_id >= MAX_QUEUES)
        return true;
    TopicQueues *queues_of_topic = topic_of(queues, topic);
    if (!queues_of_topic || !has_place(queues_of_topic, (size_t)queue_id))
        return false;
    struct known_queue *queue = &queues_of_topic->list[queue_id];
    if (!queue->tail) {
        queue->tail = (QueueTail *)Py_NewRef((PyObject *)tail);
        queue->maps = (Maps *)Py_NewRef((PyObject *)maps);
    }
    return true;
}

static PyType_Slot topic_slots[] = {
    {Py_tp_dealloc, (void *)topic_dealloc},
    {0, NULL},
};

static PyType_Spec topic_spec = {
    .name = "seglog.storage.kernels._native.TopicQueues",
    .basicsize = sizeof(TopicQueues),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = topic_slots,
};

enum { TOPIC, QUEUE_ID, QUEUE_OFFSET, MAX_COUNT, FILTER, MAX_BYTES, PARAMETERS };
enum { POSITIONAL = FILTER + 1, MS_PER_S = 1000, NS_PER_MS = 1000000, MAX_FILTERS = 64, MIN_LIVING = 8 };

typedef struct {
    PyObject_HEAD
    PyObject *slow_get, *queues, *filters;
    PyObject *found_status, *no_match_status;
    PyTypeObject *result_type, *filter_type;
    long long usual_count, usual_bytes, most_filtered;
    LogTail *log_tail;
    Maps *log_maps;
} Reads;

/* The arguments of a call; `filter` keeps `wanted` alive. */
struct question {
    PyObject *topic, *filter;
    const TagSet *wanted;
    int64_t queue_id, queue_offset, max_count, max_bytes;
};

static PyObject *names[PARAMETERS], *tag_set_name;

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * MS_PER_S + now.tv_nsec / NS_PER_MS;
}

/* Finds the tags of a filter, NULL for all messages; returns false for a filter that only Python knows. */
static bool take_filter(const Reads *reads, PyObject *filter, struct question *question)
{
    if (filter == Py_None)
        return true;
    if (PyUnicode_CheckExact(filter))
        question->filter = Py_XNewRef(PyDict_GetItemWithError(reads->filters, filter));
    else if (Py_IS_TYPE(filter, reads->filter_type))
        question->filter = PyObject_GetAttr(filter, tag_set_name);
    question->wanted = as_tag_set(question->filter);
    return question->wanted || question->filter == Py_None;
}

/* Sorts arguments by parameter; returns false for a form that is left to Python. */
static bool sort_arguments(PyObject *const *given, Py_ssize_t count, PyObject *keywords, PyObject **sorted)
{
    if (count > POSITIONAL)
        return false;
    for (Py_ssize_t i = 0; i < count; i++)
        sorted[i] = given[i];
    Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GetItem(keywords, i);
        int parameter = 0;
        while (parameter < PARAMETERS && names[parameter] != name)
            parameter++;
        if (parameter == PARAMETERS || sorted[parameter])
            return false;
        sorted[parameter] = given[count + i];
    }
    return sorted[TOPIC] && sorted[QUEUE_ID] && sorted[QUEUE_OFFSET];
}

static bool take_question(const Reads *reads, PyObject *const *given, Py_ssize_t count, PyObject *keywords,
                          struct question *question)
{
    PyObject *sorted[PARAMETERS] = {0};
    *question = (struct question){.max_count = reads->usual_count, .max_bytes = reads->usual_bytes};
    if (!sort_arguments(given, count, keywords, sorted) || !PyUnicode_CheckExact(sorted[TOPIC]))
        return false;
    question->topic = sorted[TOPIC];
    return py_to_i64(sorted[QUEUE_ID], &question->queue_id) &&
           py_to_i64(sorted[QUEUE_OFFSET], &question->queue_offset) &&
           (!sorted[MAX_COUNT] || py_to_i64(sorted[MAX_COUNT], &question->max_count)) &&
           (!sorted[MAX_BYTES] || py_to_i64(sorted[MAX_BYTES], &question->max_bytes)) &&
           (!sorted[FILTER] || take_filter(reads, sorted[FILTER], question)) && question->max_count > 0 &&
           question->max_bytes > 0;
}

/* Returns the number of units that a read examines; they are in one file. */
static size_t units_to_examine(const Reads *reads, const struct question *question,
                               const struct known_queue *queue)
{
    int64_t per_file = queue->maps->file_bytes / SEGLOG_CQ_UNIT_SIZE;
    int64_t count = per_file - question->queue_offset % per_file;
    int64_t limit = question->max_count;
    if (question->wanted && limit < reads->most_filtered)
        limit = reads->most_filtered;
    if (queue->tail->max_offset - question->queue_offset < count)
        count = queue->tail->max_offset - question->queue_offset;
    return (size_t)(count < limit ? count : limit);
}

/* Remembers that no message of a stretch is a tombstone. Single messages in random order are not remembered.
 */
static void note_living(struct known_queue *queue, int64_t from, int64_t to)
{
    bool adjoins = from <= queue->living_to && to >= queue->living_from;
    if (!adjoins && to - from < MIN_LIVING)
        return;
    queue->living_from = adjoins && queue->living_from < from ? queue->living_from : from;
    queue->living_to = adjoins && queue->living_to > to ? queue->living_to : to;
}

/* Tries one read without checks of file lengths; on PULL_UNCHECKED `*of` is the table of the file to check. */
static enum pull_end try_pull(const Reads *reads, const struct question *question, int64_t now,
                              struct read_place *place, struct pull *pull, Maps **of)
{
    if (!reads->queues)
        return PULL_FALLBACK;
    struct known_queue *queue = known_queues_find(reads->queues, question->topic, question->queue_id);
    if (!queue || question->queue_offset < queue->tail->min_offset ||
        question->queue_offset >= queue->tail->max_offset)
        return PULL_FALLBACK;
    int64_t position = question->queue_offset * SEGLOG_CQ_UNIT_SIZE;
    struct file_map *file = maps_find(queue->maps, position);
    if (!file)
        return PULL_FALLBACK;
    if (file->checked_ms != now) {
        pull->unchecked = file;
        *of = queue->maps;
        return PULL_UNCHECKED;
    }
    struct pull_question asked = {
        .units = file->bytes + position % queue->maps->file_bytes,
        .unit_count = units_to_examine(reads, question, queue),
        .max_count = (size_t)question->max_count,
        .max_bytes = question->max_bytes,
        .end_phy_offset = reads->log_tail->end_phy_offset,
        .wanted = question->wanted,
        .living_from = queue->living_from - question->queue_offset,
        .living_to = queue->living_to - question->queue_offset,
        .own_from = queue->tail->own_from - question->queue_offset, /* our appends never write tombstones */
    };
    *of = reads->log_maps;
    enum pull_end end = pull_units(&asked, reads->log_maps, now, pull);
    place->min_offset = queue->tail->min_offset;
    place->max_offset = queue->tail->max_offset;
    place->next_offset = question->queue_offset + (int64_t)pull->examined;
    if (end == PULL_DONE && !question->wanted)
        note_living(queue, question->queue_offset, place->next_offset);
    return end;
}

/* Does a plain read; NULL with an exception, or without one for a read that is not plain. */
static PyObject *plain_get(Reads *reads, const struct question *question)
{
    struct read_place place;
    struct pull pull;
    Maps *of;
    int64_t now = now_ms();
    enum pull_end end;
    while ((end = try_pull(reads, question, now, &place, &pull, &of)) == PULL_UNCHECKED) {
        Py_INCREF((PyObject *)of);
        int is_whole = file_is_whole(of, pull.unchecked, now);
        Py_DECREF((PyObject *)of);
        if (is_whole < 1)
            return NULL;
    }
    if (end == PULL_NO_MEMORY)
        return PyErr_NoMemory();
    if (end == PULL_FALLBACK)
        return NULL;
    place.status = pull.records.count ? reads->found_status : reads->no_match_status;
    return read_result_new(reads->result_type, &place, &pull.records);
}

PyObject *reads_get(PyObject *self, PyObject *const *given, Py_ssize_t count, PyObject *keywords)
{
    Reads *reads = (Reads *)self;
    struct question question;
    bool is_usual = take_question(reads, given, count, keywords, &question);
    PyObject *result = is_usual ? plain_get(reads, &question) : NULL;
    Py_XDECREF(question.filter);
    if (!result)
        PyErr_Clear(); /* the Python method meets the same error again, and raises it */
    return result;
}

static PyObject *reads_try_get(PyObject *self, PyObject *const *given, Py_ssize_t count, PyObject *keywords)
{
    PyObject *result = reads_get(self, given, count, keywords);
    return result ? result : Py_NewRef(Py_None);
}

static PyObject *reads_record_at(PyObject *self, PyObject *place)
{
    Reads *reads = (Reads *)self;
    int64_t phy_offset, now = now_ms();
    struct file_map *file;
    if (!reads->queues || !py_to_i64(place, &phy_offset))
        Py_RETURN_NONE;
    while ((file = maps_find(reads->log_maps, phy_offset)) && file->checked_ms != now) {
        int is_whole = file_is_whole(reads->log_maps, file, now);
        if (is_whole < 0)
            return NULL;
        if (!is_whole)
            Py_RETURN_NONE; /* the Python method raises the error */
    }
    int64_t size =
        file ? plain_record_bytes(reads->log_maps, file, phy_offset, reads->log_tail->end_phy_offset) : 0;
    if (!size)
        Py_RETURN_NONE;
    return part_of(file->memory, phy_offset % reads->log_maps->file_bytes, size);
}

static PyObject *reads_add_queue(PyObject *self, PyObject *args)
{
    Reads *reads = (Reads *)self;
    PyObject *topic, *tail, *maps;
    long long queue_id;
    if (!PyArg_ParseTuple(args, "ULOO", &topic, &queue_id, &tail, &maps) || !as_queue_tail(tail) ||
        !as_maps(maps))
        return NULL;
    bool is_plain = PyUnicode_CheckExact(topic) && as_maps(maps)->file_bytes % SEGLOG_CQ_UNIT_SIZE == 0;
    if (is_plain && reads->queues &&
        !known_queues_add(reads->queues, topic, queue_id, as_queue_tail(tail), as_maps(maps)))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *reads_know(PyObject *self, PyObject *args)
{
    Reads *reads = (Reads *)self;
    PyObject *expression, *tags;
    if (!PyArg_ParseTuple(args, "UO", &expression, &tags))
        return NULL;
    if (tags != Py_None && !as_tag_set(tags)) {
        PyErr_SetString(PyExc_TypeError, "a TagSet or None expected");
        return NULL;
    }
    if (PyDict_Size(reads->filters) >= MAX_FILTERS)
        PyDict_Clear(reads->filters);
    if (PyDict_SetItem(reads->filters, expression, tags) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *reads_forget(PyObject *self, PyObject *Py_UNUSED(nothing))
{
    Reads *reads = (Reads *)self;
    PyObject *queues = PyDict_New();
    if (!queues)
        return NULL;
    Py_XDECREF(reads->queues);
    reads->queues = queues;
    Py_RETURN_NONE;
}

static PyObject *reads_close(PyObject *self, PyObject *Py_UNUSED(nothing))
{
    Py_CLEAR(((Reads *)self)->queues);
    Py_RETURN_NONE;
}

static int reads_clear(PyObject *self)
{
    Reads *reads = (Reads *)self;
    Py_CLEAR(reads->queues);
    return 0;
}

static int reads_traverse(PyObject *self, visitproc visit, void *arg)
{
    Reads *reads = (Reads *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(reads->queues);
    return 0;
}

static void reads_dealloc(PyObject *self)
{
    Reads *reads = (Reads *)self;
    PyObject_GC_UnTrack(self);
    reads_clear(self);
    Py_XDECREF(reads->filters);
    Py_XDECREF(reads->found_status);
    Py_XDECREF(reads->no_match_status);
    Py_XDECREF((PyObject *)reads->result_type);
    Py_XDECREF((PyObject *)reads->filter_type);
    Py_XDECREF((PyObject *)reads->log_tail);
    Py_XDECREF((PyObject *)reads->log_maps);
    object_free(self);
}

static PyObject *reads_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *result_type, *filter_type, *found, *no_match, *tail, *maps;
    long long usual_count, usual_bytes, most_filtered;
    if (!has_no_keywords(keywords, "Reads") ||
        !PyArg_ParseTuple(args, "OO!OOOO(LLL)", &result_type, &PyType_Type, &filter_type, &found, &no_match,
                          &tail, &maps, &usual_count, &usual_bytes, &most_filtered) ||
        !as_log_tail(tail) || !as_maps(maps))
        return NULL;
    if (!is_read_result_type(result_type)) {
        PyErr_SetString(PyExc_TypeError, "results are made of ReadResult");
        return NULL;
    }
    Reads *reads = object_new(type);
    if (!reads)
        return NULL;
    reads->result_type = (PyTypeObject *)Py_NewRef(result_type);
    reads->filter_type = (PyTypeObject *)Py_NewRef(filter_type);
    reads->found_status = Py_NewRef(found);
    reads->no_match_status = Py_NewRef(no_match);
    reads->log_tail = (LogTail *)Py_NewRef(tail);
    reads->log_maps = (Maps *)Py_NewRef(maps);
    reads->usual_count = usual_count;
    reads->usual_bytes = usual_bytes;
    reads->most_filtered = most_filtered;
    reads->queues = PyDict_New();
    reads->filters = PyDict_New();
    if (!reads->queues || !reads->filters) {
        Py_DECREF(reads);
        return NULL;
    }
    return (PyObject *)reads;
}

static PyMethodDef methods[] = {
    FAST_METHOD("try_get", reads_try_get),
    {"record_at", reads_record_at, METH_O, NULL},
    {"add", reads_add_queue, METH_VARARGS, NULL},
    {"know", reads_know, METH_VARARGS, NULL},
    {"forget", reads_forget, METH_NOARGS, NULL},
    {"close", reads_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)reads_new},
    {Py_tp_dealloc, (void *)reads_dealloc},
    {Py_tp_traverse, (void *)reads_traverse},
    {Py_tp_clear, (void *)reads_clear},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "seglog.storage.kernels._native.Reads",
    .basicsize = sizeof(Reads),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

static PyTypeObject *reads_type;

bool is_reads(PyObject *value)
{
    return Py_IS_TYPE(value, reads_type);
}

int reads_add(PyObject *module)
{
    static const char *const texts[PARAMETERS] = {
        "topic", "queue_id", "queue_offset", "max_count", "filter", "max_bytes",
    };
    static const char *const tag_set_text = "tag_set";
    topic_type = type_add(module, &topic_spec, NULL);
    reads_type = type_add(module, &spec, "Reads");
    return topic_type && reads_type && intern(names, texts, PARAMETERS) &&
                   intern(&tag_set_name, &tag_set_text, 1)
               ? 0
               : -1;
}
