/* Reads the records of queue units, and the type ReadResult. */

#include "reads.h"
#include "record.h"

typedef struct {
    PyObject_HEAD
    PyObject *status, *lost, *run_list, *record_list, *decoded;
    long long next_offset, min_offset, max_offset;
    struct read_records records;
} ReadResult;

static PyTypeObject *read_result_type;
static PyObject *nothing_lost;

static void records_free(struct read_records *records)
{
    for (size_t i = 0; i < records->run_count; i++)
        Py_DECREF(records->runs[i].memory);
    PyMem_Free(records->runs);
    PyMem_Free(records->sizes);
}

enum { FIRST_RUNS = 4, MORE_RUNS = 8 };

/* One unit. */
struct unit {
    int64_t phy_offset, tags_code;
    int32_t size_bytes;
};

/* The file of the last record, and the end of the last run. */
struct cursor {
    const struct file_map *file;
    int64_t first, end, run_end;
    size_t run_room;
};

static struct unit unit_at(const uint8_t *at)
{
    return (struct unit){
        .phy_offset = read_i64(at + SEGLOG_CQ_UNIT_PHY_OFFSET_AT),
        .tags_code = read_i64(at + SEGLOG_CQ_UNIT_TAGS_CODE_AT),
        .size_bytes = read_i32(at + SEGLOG_CQ_UNIT_SIZE_BYTES_AT),
    };
}

static bool leads_to_record(const struct unit *unit, const struct pull_question *question)
{
    return unit->phy_offset >= 0 && unit->size_bytes >= SEGLOG_MIN_RECORD_BYTES &&
           unit->size_bytes != SEGLOG_PRE_BLANK_BYTES &&
           unit->phy_offset <= question->end_phy_offset - unit->size_bytes;
}

/* Moves to the file of a record. */
static enum pull_end go_to(struct cursor *cursor, const Maps *log, int64_t phy_offset, int64_t now_ms,
                           struct pull *pull)
{
    if (phy_offset >= cursor->first && phy_offset < cursor->end)
        return PULL_DONE;
    struct file_map *file = maps_find(log, phy_offset);
    if (!file)
        return PULL_FALLBACK;
    if (file->checked_ms != now_ms) {
        pull->unchecked = file;
        return PULL_UNCHECKED;
    }
    cursor->file = file;
    cursor->first = phy_offset - phy_offset % log->file_bytes;
    cursor->end = cursor->first + log->file_bytes;
    return PULL_DONE;
}

/* Whether a record may be a tombstone. Its head is read only if the unit does not decide it: the first read of a
 * record's memory is slow. A code outside of the range of tag hashes was set by a broker.
 */
static bool may_be_lost(const struct pull_question *question, size_t i, const struct unit *unit,
                        const uint8_t *record)
{
    bool is_open = unit->tags_code == 0 || unit->tags_code == SEGLOG_LOST_TAGS_CODE ||
                   unit->tags_code != (int32_t)unit->tags_code;
    bool is_living = (int64_t)i >= question->own_from ||
                     ((int64_t)i >= question->living_from && (int64_t)i < question->living_to);
    return is_open && !is_living && is_tombstone(record);
}

/* Compares the tag; sets *is_readable to whether the record can be read. */
static bool is_wanted(const TagSet *wanted, const struct unit *unit, const uint8_t *bytes, bool *is_readable)
{
    struct record record;
    *is_readable = true;
    if (!wanted || tag_set_is_loose(wanted))
        return true;
    int64_t own_offset = read_i64(bytes + SEGLOG_HEADS_0_PHY_OFFSET_AT);
    *is_readable = record_read(span_of(bytes, (size_t)unit->size_bytes), own_offset, &record);
    return *is_readable && tag_set_has_tag(wanted, record.properties);
}

static bool has_run_room(struct cursor *cursor, struct read_records *records)
{
    if (records->run_count < cursor->run_room)
        return true;
    size_t room = cursor->run_room ? MORE_RUNS * cursor->run_room : FIRST_RUNS;
    struct record_run *runs = PyMem_Realloc(records->runs, room * sizeof *runs);
    if (!runs)
        return false;
    records->runs = runs;
    cursor->run_room = room;
    return true;
}

static bool take_record(struct cursor *cursor, struct read_records *records, const struct unit *unit)
{
    int64_t position = unit->phy_offset - cursor->first;
    records->sizes[records->count++] = unit->size_bytes;
    if (unit->phy_offset == cursor->run_end && position > 0) {
        records->runs[records->run_count - 1].size_bytes += unit->size_bytes;
    } else {
        if (!has_run_room(cursor, records))
            return false;
        records->runs[records->run_count++] =
            (struct record_run){Py_NewRef(cursor->file->memory), position, unit->size_bytes};
    }
    cursor->run_end = unit->phy_offset + unit->size_bytes;
    return true;
}

static enum pull_end walk_units(const struct pull_question *question, const Maps *log, int64_t now_ms,
                                struct pull *pull)
{
    struct cursor cursor = {.run_end = -1};
    const TagSet *wanted = question->wanted;
    int64_t held_bytes = 0;
    size_t i;
    for (i = 0; i < question->unit_count; i++) {
        struct unit unit = unit_at(question->units + i * SEGLOG_CQ_UNIT_SIZE);
        if (!leads_to_record(&unit, question))
            return PULL_FALLBACK;
        if (wanted && (unit.tags_code == SEGLOG_LOST_TAGS_CODE || unit.tags_code <= SEGLOG_MAX_EXT_ADDRESS))
            return PULL_FALLBACK;
        if (wanted && !tag_set_has_code(wanted, unit.tags_code))
            continue;
        if (pull->records.count && (pull->records.count >= question->max_count ||
                                    unit.size_bytes > question->max_bytes - held_bytes))
            break;
        enum pull_end end = go_to(&cursor, log, unit.phy_offset, now_ms, pull);
        if (end != PULL_DONE)
            return end;
        int64_t record_end = unit.phy_offset + unit.size_bytes;
        if (record_end > cursor.end || !maps_are_sound(log, cursor.file, unit.phy_offset, record_end))
            return PULL_FALLBACK;
        const uint8_t *record = cursor.file->bytes + (unit.phy_offset - cursor.first);
        bool is_readable = true;
        if (may_be_lost(question, i, &unit, record))
            return PULL_FALLBACK;
        if (!is_wanted(wanted, &unit, record, &is_readable)) {
            if (!is_readable)
                return PULL_FALLBACK;
            continue;
        }
        if (!take_record(&cursor, &pull->records, &unit))
            return PULL_NO_MEMORY;
        held_bytes += unit.size_bytes;
    }
    pull->examined = i;
    return PULL_DONE;
}

enum pull_end pull_units(const struct pull_question *question, const Maps *log, int64_t now_ms,
                         struct pull *pull)
{
    size_t most = question->max_count < question->unit_count ? question->max_count : question->unit_count;
    *pull = (struct pull){0};
    pull->records.sizes = PyMem_Malloc(most * sizeof *pull->records.sizes);
    enum pull_end end = pull->records.sizes ? walk_units(question, log, now_ms, pull) : PULL_NO_MEMORY;
    if (end != PULL_DONE)
        records_free(&pull->records);
    return end;
}

int64_t plain_record_bytes(const Maps *log, const struct file_map *file, int64_t phy_offset,
                           int64_t end_phy_offset)
{
    int64_t position = phy_offset % log->file_bytes;
    int64_t end = phy_offset - position + log->file_bytes;
    if (end > end_phy_offset)
        end = end_phy_offset;
    if (end - phy_offset < SEGLOG_MIN_RECORD_BYTES ||
        !maps_are_sound(log, file, phy_offset, phy_offset + SEGLOG_MIN_RECORD_BYTES))
        return 0;
    const uint8_t *record = file->bytes + position;
    int32_t size = read_i32(record + SEGLOG_HEADS_0_SIZE_BYTES_AT);
    uint32_t magic = read_u32(record + SEGLOG_HEADS_0_MAGIC_AT);
    bool is_record = (magic == SEGLOG_MAGIC_V1 || magic == SEGLOG_MAGIC_V2) &&
                     size >= SEGLOG_MIN_RECORD_BYTES && size <= end - phy_offset &&
                     maps_are_sound(log, file, phy_offset, phy_offset + size) && !is_tombstone(record);
    return is_record ? size : 0;
}

PyObject *read_result_new(PyTypeObject *type, const struct read_place *place, struct read_records *records)
{
    ReadResult *result = object_new(type);
    if (!result) {
        records_free(records);
        return NULL;
    }
    result->status = Py_NewRef(place->status);
    result->lost = Py_NewRef(nothing_lost);
    result->next_offset = place->next_offset;
    result->min_offset = place->min_offset;
    result->max_offset = place->max_offset;
    result->records = *records;
    return (PyObject *)result;
}

static void read_result_dealloc(PyObject *self)
{
    ReadResult *result = (ReadResult *)self;
    records_free(&result->records);
    Py_XDECREF(result->status);
    Py_XDECREF(result->lost);
    Py_XDECREF(result->run_list);
    Py_XDECREF(result->record_list);
    Py_XDECREF(result->decoded);
    object_free(self);
}

/* Takes runs from Python, each a view of bytes. */
static bool take_runs(PyObject *runs, struct read_records *records)
{
    Py_ssize_t count = PySequence_Size(runs);
    if (count < 0)
        return false;
    records->runs = PyMem_Calloc((size_t)count + 1, sizeof *records->runs);
    if (!records->runs) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *run = PySequence_GetItem(runs, i);
        Py_ssize_t size = run ? PyObject_Size(run) : -1;
        if (size < 0) {
            Py_XDECREF(run);
            return false;
        }
        records->runs[records->run_count++] = (struct record_run){run, 0, size};
    }
    return true;
}

/* Takes the size of each record; without sizes each run is one record. */
static bool take_sizes(PyObject *sizes, struct read_records *records)
{
    Py_ssize_t count = sizes == Py_None ? (Py_ssize_t)records->run_count : PySequence_Size(sizes);
    records->sizes = count < 0 ? NULL : PyMem_Calloc((size_t)count + 1, sizeof *records->sizes);
    if (!records->sizes) {
        if (count >= 0)
            PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *given = sizes == Py_None ? PyLong_FromLongLong(records->runs[i].size_bytes)
                                           : PySequence_GetItem(sizes, i);
        long size = given ? PyLong_AsLong(given) : -1;
        Py_XDECREF(given);
        if (size == -1 && PyErr_Occurred())
            return false;
        records->sizes[records->count++] = (int32_t)size;
    }
    return true;
}

/* Whether the records fill the runs exactly, and each record is in one run. */
static bool fill(const struct read_records *records)
{
    size_t record = 0;
    for (size_t i = 0; i < records->run_count; i++) {
        int64_t left = records->runs[i].size_bytes;
        while (left > 0 && record < records->count && records->sizes[record] > 0 &&
               records->sizes[record] <= left)
            left -= records->sizes[record++];
        if (left)
            return false;
    }
    return record == records->count;
}

static PyObject *read_result_make(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"status", "next_offset", "min_offset", "max_offset",
                            "runs",   "lost",        "sizes",      NULL};
    struct read_place place;
    struct read_records records = {0};
    PyObject *runs = nothing_lost, *lost = nothing_lost, *sizes = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OLLL|OOO", names, &place.status, &place.next_offset,
                                     &place.min_offset, &place.max_offset, &runs, &lost, &sizes))
        return NULL;
    if (!take_runs(runs, &records) || !take_sizes(sizes, &records)) {
        records_free(&records);
        return NULL;
    }
    if (!fill(&records)) {
        records_free(&records);
        PyErr_SetString(PyExc_ValueError, "the records do not fill the runs");
        return NULL;
    }
    ReadResult *result = (ReadResult *)read_result_new(type, &place, &records);
    if (result) {
        Py_DECREF(result->lost);
        result->lost = Py_NewRef(lost);
    }
    return (PyObject *)result;
}

PyObject *part_of(PyObject *memory, int64_t start, int64_t size_bytes)
{
    if (is_memory(memory))
        return log_bytes_new(memory, start, size_bytes);
    PyObject *first = PyLong_FromLongLong(start);
    PyObject *end = PyLong_FromLongLong(start + size_bytes);
    PyObject *slice = first && end ? PySlice_New(first, end, NULL) : NULL;
    PyObject *part = slice ? PyObject_GetItem(memory, slice) : NULL;
    Py_XDECREF(first);
    Py_XDECREF(end);
    Py_XDECREF(slice);
    return part;
}

static PyObject *run_at(const void *runs, size_t i)
{
    const struct record_run *run = (const struct record_run *)runs + i;
    return part_of(run->memory, run->start, run->size_bytes);
}

static PyObject *new_runs(const struct read_records *records)
{
    return list_of(records->run_count, run_at, records->runs);
}

static PyObject *new_records(const struct read_records *records)
{
    PyObject *list = PyList_New((Py_ssize_t)records->count);
    size_t record = 0;
    for (size_t i = 0; list && i < records->run_count; i++) {
        const struct record_run *run = &records->runs[i];
        for (int64_t at = 0; list && at < run->size_bytes; at += records->sizes[record++]) {
            PyObject *view = part_of(run->memory, run->start + at, records->sizes[record]);
            if (!view || PyList_SetItem(list, (Py_ssize_t)record, view) < 0)
                Py_CLEAR(list);
        }
    }
    return list;
}

/* Returns a list that is created once. Creating it may let another thread run, which may create it too: then the
 * first one is kept. */
static PyObject *made_once(PyObject **list, const struct read_records *records,
                           PyObject *(*make)(const struct read_records *))
{
    if (!*list) {
        PyObject *made = make(records);
        if (!made)
            return NULL;
        if (*list)
            Py_DECREF(made);
        else
            *list = made;
    }
    return Py_NewRef(*list);
}

static PyObject *read_result_runs(PyObject *self, void *Py_UNUSED(closure))
{
    ReadResult *result = (ReadResult *)self;
    return made_once(&result->run_list, &result->records, new_runs);
}

static PyObject *read_result_records(PyObject *self, void *Py_UNUSED(closure))
{
    ReadResult *result = (ReadResult *)self;
    return made_once(&result->record_list, &result->records, new_records);
}

static Py_ssize_t read_result_count(PyObject *self)
{
    return (Py_ssize_t)((ReadResult *)self)->records.count;
}

static PyMemberDef members[] = {
    {"status", T_OBJECT_EX, offsetof(ReadResult, status), READONLY, NULL},
    {"next_offset", T_LONGLONG, offsetof(ReadResult, next_offset), READONLY, NULL},
    {"min_offset", T_LONGLONG, offsetof(ReadResult, min_offset), READONLY, NULL},
    {"max_offset", T_LONGLONG, offsetof(ReadResult, max_offset), READONLY, NULL},
    {"lost", T_OBJECT_EX, offsetof(ReadResult, lost), READONLY, NULL},
    {"decoded", T_OBJECT, offsetof(ReadResult, decoded), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef computed[] = {
    {"runs", read_result_runs, NULL, NULL, NULL},
    {"records", read_result_records, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)read_result_make},
    {Py_tp_dealloc, (void *)read_result_dealloc},
    {Py_tp_members, members},
    {Py_tp_getset, computed},
    {Py_sq_length, (void *)read_result_count},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "seglog.storage.kernels._native.ReadResult",
    .basicsize = sizeof(ReadResult),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

const struct read_records *records_of(PyObject *result)
{
    return PyObject_TypeCheck(result, read_result_type) ? &((ReadResult *)result)->records : NULL;
}

bool is_read_result_type(PyObject *type)
{
    return PyType_Check(type) && PyType_IsSubtype((PyTypeObject *)type, read_result_type);
}

int read_result_add(PyObject *module)
{
    nothing_lost = PyTuple_New(0);
    read_result_type = type_add(module, &spec, "ReadResult");
    return nothing_lost && read_result_type ? 0 : -1;
}
