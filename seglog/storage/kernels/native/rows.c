/* Many records at once: rows brought together by queue and held against units, and columns of their strings.
 */

#include "python_api.h"
#include "record.h"

/* What the rows of one queue come to. */
struct group {
    size_t count, end; /* end: after its last row among all */
    int64_t size_bytes, least_ms, greatest_ms;
};

static bool has_place(const uint8_t *row)
{
    return takes_queue_offset(row_i32(row + SEGLOG_ROW_SYS_FLAG_AT));
}

static void add(struct group *group, const uint8_t *row)
{
    int64_t time_ms = row_i64(row + SEGLOG_ROW_STORE_TIMESTAMP_MS_AT);
    if (!group->count || time_ms < group->least_ms)
        group->least_ms = time_ms;
    if (!group->count || time_ms > group->greatest_ms)
        group->greatest_ms = time_ms;
    group->size_bytes += row_i32(row + SEGLOG_ROW_SIZE_BYTES_AT);
    group->count++;
}

/* Puts the rows that have a place in a plain queue together, each queue's in the order that they have.
 *
 * rows: `count` rows of SEGLOG_ROW_SIZE bytes.
 * groups: one for each queue, all zero; the rows' numbers are below `group_count`.
 * sorted: room for as many rows; queues follow each other by their numbers.
 *
 * Returns false if a row has a number that is none, or belongs to an inner batch, which has another kind of
 * queue.
 */
static bool rows_group(const uint8_t *rows, size_t count, struct group *groups, size_t group_count,
                       uint8_t *sorted)
{
    const uint8_t *behind = rows + count * SEGLOG_ROW_SIZE;
    for (const uint8_t *row = rows; row != behind; row += SEGLOG_ROW_SIZE) {
        int32_t queue = row_i32(row + SEGLOG_ROW_QUEUE_AT);
        if (queue < 0 || (size_t)queue >= group_count ||
            row_i32(row + SEGLOG_ROW_SYS_FLAG_AT) & SEGLOG_INNER_BATCH)
            return false;
        if (has_place(row))
            add(&groups[queue], row);
    }
    size_t end = 0;
    for (size_t i = 0; i < group_count; i++) {
        size_t size = groups[i].count;
        groups[i].end = end;
        end += size;
    }
    for (const uint8_t *row = rows; row != behind; row += SEGLOG_ROW_SIZE)
        if (has_place(row))
            memcpy(sorted + groups[row_i32(row + SEGLOG_ROW_QUEUE_AT)].end++ * SEGLOG_ROW_SIZE, row,
                   SEGLOG_ROW_SIZE);
    return true;
}

static bool is_unit_of(const uint8_t *row, const uint8_t *unit)
{
    return read_i64(unit + SEGLOG_CQ_UNIT_PHY_OFFSET_AT) == row_i64(row + SEGLOG_ROW_PHY_OFFSET_AT) &&
           read_i32(unit + SEGLOG_CQ_UNIT_SIZE_BYTES_AT) == row_i32(row + SEGLOG_ROW_SIZE_BYTES_AT) &&
           read_i64(unit + SEGLOG_CQ_UNIT_TAGS_CODE_AT) == row_i64(row + SEGLOG_ROW_TAGS_CODE_AT);
}

/* A unit of size 0 is a free slot, one of the pre-blank size stands for no message. */
static bool has_size_of_record(const uint8_t *row)
{
    int32_t size = row_i32(row + SEGLOG_ROW_SIZE_BYTES_AT);
    return size >= SEGLOG_MIN_RECORD_BYTES && size != SEGLOG_PRE_BLANK_BYTES;
}

/* Differences wrap, so that none overflows; what wraps is none of these. */
static bool follows(const uint8_t *row, const uint8_t *before)
{
    uint64_t step = (uint64_t)row_i64(row + SEGLOG_ROW_QUEUE_OFFSET_AT) -
                    (uint64_t)row_i64(before + SEGLOG_ROW_QUEUE_OFFSET_AT);
    int64_t place = row_i64(row + SEGLOG_ROW_PHY_OFFSET_AT);
    int64_t place_before = row_i64(before + SEGLOG_ROW_PHY_OFFSET_AT);
    return step == 1 && place > place_before &&
           (uint64_t)place - (uint64_t)place_before >= SEGLOG_MIN_RECORD_BYTES;
}

/* Whether rows of one queue follow each other, in the queue and in the log, and their units are these. */
static bool rows_stand_in(const uint8_t *rows, size_t count, const uint8_t *units)
{
    for (size_t i = 0; i < count; i++) {
        const uint8_t *row = rows + i * SEGLOG_ROW_SIZE;
        if (!has_size_of_record(row) || (i && !follows(row, row - SEGLOG_ROW_SIZE)) ||
            !is_unit_of(row, units + i * SEGLOG_CQ_UNIT_SIZE))
            return false;
    }
    return true;
}

PyObject *py_rows_stand_in(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer rows, units;
    bool stand;
    if (!PyArg_ParseTuple(args, "y*y*", &rows, &units))
        return NULL;
    size_t count = (size_t)rows.len / SEGLOG_ROW_SIZE;
    if (count != (size_t)units.len / SEGLOG_CQ_UNIT_SIZE) {
        stand = false;
    } else {
        Py_BEGIN_ALLOW_THREADS
        stand = rows_stand_in(rows.buf, count, units.buf);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&units);
    PyBuffer_Release(&rows);
    return PyBool_FromLong(stand);
}

static PyObject *list_of_groups(const struct group *groups, size_t group_count)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < group_count; i++) {
        const struct group *group = &groups[i];
        if (!group->count)
            continue;
        PyObject *one =
            Py_BuildValue("(nnLLL)", (Py_ssize_t)i, (Py_ssize_t)group->count, (long long)group->size_bytes,
                          (long long)group->least_ms, (long long)group->greatest_ms);
        if (!one || PyList_Append(list, one) < 0)
            Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

static PyObject *group_rows(const Py_buffer *rows, size_t group_count, const Py_buffer *sorted)
{
    struct group *groups = PyMem_Calloc(group_count ? group_count : 1, sizeof *groups);
    if (!groups)
        return PyErr_NoMemory();
    bool is_grouped;
    Py_BEGIN_ALLOW_THREADS
    is_grouped = rows_group(rows->buf, (size_t)rows->len / SEGLOG_ROW_SIZE, groups, group_count, sorted->buf);
    Py_END_ALLOW_THREADS
    PyObject *result = is_grouped ? list_of_groups(groups, group_count) : Py_BuildValue("");
    PyMem_Free(groups);
    return result;
}

PyObject *py_group_rows(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer rows, sorted;
    Py_ssize_t group_count;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*nw*", &rows, &group_count, &sorted))
        return NULL;
    if (group_count < 0 || sorted.len < rows.len)
        PyErr_SetString(PyExc_ValueError, "rows are put together where there is room for all of them");
    else
        result = group_rows(&rows, (size_t)group_count, &sorted);
    PyBuffer_Release(&sorted);
    PyBuffer_Release(&rows);
    return result;
}

/* Strings of a buffer: where each starts, and how long it is. */
struct strings {
    struct span buffer;
    const int64_t *starts, *sizes;
    size_t count;
};

/* Whether all of them lie within their buffer. */
static bool strings_lie_within(const struct strings *strings)
{
    uint64_t size = strings->buffer.size;
    for (size_t i = 0; i < strings->count; i++) {
        /* Negative numbers are large ones. */
        uint64_t start = (uint64_t)strings->starts[i], length = (uint64_t)strings->sizes[i];
        if (start > size || length > size - start)
            return false;
    }
    return true;
}

/* One of them, which does. */
static struct span string_at(const struct strings *strings, size_t i)
{
    return span_of(strings->buffer.at + strings->starts[i], (size_t)strings->sizes[i]);
}

/* Copies them one after the other; false, without any, if there is no room for all of them. */
static bool strings_copy(const struct strings *strings, uint8_t *target, size_t room)
{
    uint64_t total = 0;
    for (size_t i = 0; i < strings->count; i++) {
        total += (uint64_t)strings->sizes[i];
        if (total > room)
            return false;
    }
    for (size_t i = 0; i < strings->count; i++) {
        struct span string = string_at(strings, i);
        if (string.size)
            memcpy(target, string.at, string.size);
        target += string.size;
    }
    return true;
}

enum { MOST_ENTRIES = 64 };

struct entry {
    struct span name, value;
};

struct entries {
    struct entry list[MOST_ENTRIES];
    size_t count;
};

/* Properties of many records as a map of Arrow: room for it, and what is in it. Ends count from 0: entry i of
 * a list ends at ends[i].
 */
struct property_map {
    int32_t *row_ends;               /* entries up to the end of each record */
    int32_t *name_ends, *value_ends; /* of each entry */
    uint8_t *names, *values;
    size_t entry_room, name_room, value_room;
    size_t count;
};

/* Takes the earlier entry of a name out. */
static void forget(struct entries *entries, struct span name)
{
    for (size_t i = 0; i < entries->count; i++) {
        if (spans_are_equal(entries->list[i].name, name)) {
            entries->count--;
            memmove(&entries->list[i], &entries->list[i + 1], (entries->count - i) * sizeof entries->list[0]);
            return;
        }
    }
}

static bool take_apart(struct entries *entries, struct span properties)
{
    entries->count = 0;
    while (properties.size) {
        struct span value = span_take_piece(&properties, SEGLOG_ENTRY_END);
        struct span name = span_take_piece(&value, SEGLOG_NAME_END);
        if (name.size && value.size) {
            forget(entries, name);
            if (entries->count == MOST_ENTRIES)
                return false;
            struct entry entry = {name, value};
            entries->list[entries->count++] = entry;
        }
    }
    return true;
}

/* Takes the properties of all records apart; of several entries of a name the last stays, in its place.
 * False where there is no room, or where a record has more entries than are compared with each other.
 */
static bool property_map_fill(struct property_map *map, const struct strings *properties)
{
    struct entries entries;
    size_t names = 0, values = 0;
    for (size_t row = 0; row < properties->count; row++) {
        if (!take_apart(&entries, string_at(properties, row)) || entries.count > map->entry_room - map->count)
            return false;
        for (size_t i = 0; i < entries.count; i++) {
            struct span name = entries.list[i].name, value = entries.list[i].value;
            if (name.size > map->name_room - names || value.size > map->value_room - values)
                return false;
            memcpy(map->names + names, name.at, name.size);
            memcpy(map->values + values, value.at, value.size);
            names += name.size;
            values += value.size;
            map->name_ends[map->count] = (int32_t)names;
            map->value_ends[map->count] = (int32_t)values;
            map->count++;
        }
        map->row_ends[row] = (int32_t)map->count;
    }
    return true;
}

/* Where the value of a property lies in the buffer, and its size, of each record; size 0 without one. */
static void property_values(const struct strings *properties, struct span name, int64_t *starts,
                            int64_t *sizes)
{
    for (size_t row = 0; row < properties->count; row++) {
        struct span value = property_value(string_at(properties, row), name);
        starts[row] = value.size ? (int64_t)(value.at - properties->buffer.at) : 0;
        sizes[row] = (int64_t)value.size;
    }
}

struct copy_job {
    struct strings strings;
    uint8_t *target;
    size_t room;
    bool fits;
};

struct map_job {
    struct strings properties;
    struct property_map map;
    bool is_whole;
};

struct value_job {
    struct strings properties;
    struct span name;
    int64_t *starts, *sizes;
};

static void copy_job(void *state)
{
    struct copy_job *job = state;
    job->fits = strings_copy(&job->strings, job->target, job->room);
}

static void map_job(void *state)
{
    struct map_job *job = state;
    job->is_whole = property_map_fill(&job->map, &job->properties);
}

static void value_job(void *state)
{
    struct value_job *job = state;
    property_values(&job->properties, job->name, job->starts, job->sizes);
}

enum { VIEW, STARTS, SIZES, OTHERS };

/* The strings of the first three of some buffers; false with an exception if they are none of them. */
static bool take_strings(struct strings *strings, const Py_buffer *in)
{
    strings->buffer = span_in(&in[VIEW]);
    strings->starts = in[STARTS].buf;
    strings->sizes = in[SIZES].buf;
    strings->count = (size_t)in[STARTS].len / sizeof(int64_t);
    if (in[STARTS].len == in[SIZES].len && strings_lie_within(strings))
        return true;
    PyErr_SetString(PyExc_ValueError, "each string has a start and a size within the buffer");
    return false;
}

static void *no_room(void)
{
    PyErr_SetString(PyExc_ValueError, "the columns have no room for the strings");
    return NULL;
}

PyObject *py_copy_strings(PyObject *Py_UNUSED(module), PyObject *args)
{
    enum { TARGET = OTHERS, BUFFERS };
    Py_buffer in[BUFFERS];
    PyObject *result = NULL;
    struct copy_job job;
    if (!PyArg_ParseTuple(args, "y*y*y*w*", &in[VIEW], &in[STARTS], &in[SIZES], &in[TARGET]))
        return NULL;
    job.target = in[TARGET].buf;
    job.room = (size_t)in[TARGET].len;
    if (take_strings(&job.strings, in) && call_guarded(&in[VIEW], copy_job, &job))
        result = job.fits ? Py_NewRef(Py_None) : no_room();
    buffers_release(in, BUFFERS);
    return result;
}

PyObject *py_property_map(PyObject *Py_UNUSED(module), PyObject *args)
{
    enum { ROW_ENDS = OTHERS, NAME_ENDS, NAMES, VALUE_ENDS, VALUES, BUFFERS };
    Py_buffer in[BUFFERS];
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*y*y*w*w*w*w*w*", &in[VIEW], &in[STARTS], &in[SIZES], &in[ROW_ENDS],
                          &in[NAME_ENDS], &in[NAMES], &in[VALUE_ENDS], &in[VALUES]))
        return NULL;
    struct map_job job = {
        .map = {.row_ends = in[ROW_ENDS].buf,
                .name_ends = in[NAME_ENDS].buf,
                .value_ends = in[VALUE_ENDS].buf,
                .names = in[NAMES].buf,
                .values = in[VALUES].buf,
                .entry_room = (size_t)in[NAME_ENDS].len / sizeof(int32_t),
                .name_room = (size_t)in[NAMES].len,
                .value_room = (size_t)in[VALUES].len},
    };
    if (take_strings(&job.properties, in)) {
        if ((size_t)in[ROW_ENDS].len != job.properties.count * sizeof(int32_t) ||
            in[VALUE_ENDS].len != in[NAME_ENDS].len || in[NAMES].len > INT32_MAX ||
            in[VALUES].len > INT32_MAX)
            no_room();
        else if (call_guarded(&in[VIEW], map_job, &job))
            result = PyLong_FromSsize_t(job.is_whole ? (Py_ssize_t)job.map.count : -1);
    }
    buffers_release(in, BUFFERS);
    return result;
}

PyObject *py_property_values(PyObject *Py_UNUSED(module), PyObject *args)
{
    enum { NAME = OTHERS, VALUE_STARTS, VALUE_SIZES, BUFFERS };
    Py_buffer in[BUFFERS];
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*y*y*y*w*w*", &in[VIEW], &in[STARTS], &in[SIZES], &in[NAME],
                          &in[VALUE_STARTS], &in[VALUE_SIZES]))
        return NULL;
    struct value_job job = {
        .name = span_in(&in[NAME]), .starts = in[VALUE_STARTS].buf, .sizes = in[VALUE_SIZES].buf};
    if (take_strings(&job.properties, in)) {
        if (in[NAME].len == 0 || in[VALUE_STARTS].len != in[STARTS].len ||
            in[VALUE_SIZES].len != in[STARTS].len)
            no_room();
        else if (call_guarded(&in[VIEW], value_job, &job))
            result = Py_NewRef(Py_None);
    }
    buffers_release(in, BUFFERS);
    return result;
}
