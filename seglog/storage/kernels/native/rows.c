/* Many records at once: groups rows by queue, compares rows with units, and copies columns of strings.
 */

#include "python_api.h"
#include "record.h"

/* The sums of the rows of one queue. */
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

/* Groups the rows with an offset in a plain queue by queue; the rows of one queue keep their order.
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

/* A unit of size 0 is a free slot, a unit of the pre-blank size leads to no message. */
static bool has_size_of_record(const uint8_t *row)
{
    int32_t size = row_i32(row + SEGLOG_ROW_SIZE_BYTES_AT);
    return size >= SEGLOG_MIN_RECORD_BYTES && size != SEGLOG_PRE_BLANK_BYTES;
}

/* Unsigned differences wrap instead of overflowing; a wrapped one is never a valid distance. */
static bool follows(const uint8_t *row, const uint8_t *before)
{
    uint64_t step = (uint64_t)row_i64(row + SEGLOG_ROW_QUEUE_OFFSET_AT) -
                    (uint64_t)row_i64(before + SEGLOG_ROW_QUEUE_OFFSET_AT);
    int64_t place = row_i64(row + SEGLOG_ROW_PHY_OFFSET_AT);
    int64_t place_before = row_i64(before + SEGLOG_ROW_PHY_OFFSET_AT);
    return step == 1 && place > place_before &&
           (uint64_t)place - (uint64_t)place_before >= SEGLOG_MIN_RECORD_BYTES;
}

/* Whether rows of one queue have no gaps, ascend in the log, and have exactly these units. */
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

/* Strings of a buffer: the start and the size of each. */
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
        /* As unsigned numbers, negative ones are larger than any size. */
        uint64_t start = (uint64_t)strings->starts[i], length = (uint64_t)strings->sizes[i];
        if (start > size || length > size - start)
            return false;
    }
    return true;
}

/* Returns one string, which must be within the buffer. */
static struct span string_at(const struct strings *strings, size_t i)
{
    return span_of(strings->buffer.at + strings->starts[i], (size_t)strings->sizes[i]);
}

/* Copies the strings one after the other; copies none and returns false without room for all of them. */
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

struct copy_job {
    struct strings strings;
    uint8_t *target;
    size_t room;
    bool fits;
};

static void copy_job(void *state)
{
    struct copy_job *job = state;
    job->fits = strings_copy(&job->strings, job->target, job->room);
}

enum { VIEW, STARTS, SIZES, OTHERS };

/* Reads strings from three buffers: bytes, starts and sizes; returns false with an exception if they do not
 * fit together. */
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
