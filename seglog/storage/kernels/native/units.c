/* Queue units of a rewritten log: created from rows and records, and sorted by queue.
 */

#include "python_api.h"
#include "record.h"

struct units_job {
    struct span records;
    int64_t phy_offset;
    struct span are_plain; /* one byte per queue */
    int32_t placeholder_flag;
};

/* Writes the unit of a row; returns whether the row has an offset of its own in a plain queue. Sets `is_within` to
 * false for a row whose record or queue does not exist.
 */
static bool unit_of(const struct units_job *job, const uint8_t *row, uint8_t *unit, bool *is_within)
{
    int32_t queue = row_i32(row + SEGLOG_ROW_QUEUE_AT), sys_flag = row_i32(row + SEGLOG_ROW_SYS_FLAG_AT);
    int64_t phy_offset = row_i64(row + SEGLOG_ROW_PHY_OFFSET_AT), at = phy_offset - job->phy_offset;
    *is_within = queue >= 0 && (size_t)queue < job->are_plain.size && phy_offset >= job->phy_offset &&
                 job->records.size >= SEGLOG_HEADS_0_SIZE &&
                 (uint64_t)at <= job->records.size - SEGLOG_HEADS_0_SIZE;
    if (!*is_within || !takes_queue_offset(sys_flag) || sys_flag & SEGLOG_INNER_BATCH ||
        !job->are_plain.at[queue])
        return false;
    set_row_i64(unit + SEGLOG_SPILLED_QUEUE_OFFSET_AT, row_i64(row + SEGLOG_ROW_QUEUE_OFFSET_AT));
    set_row_i64(unit + SEGLOG_SPILLED_PHY_OFFSET_AT, phy_offset);
    set_row_i64(unit + SEGLOG_SPILLED_TAGS_CODE_AT, row_i64(row + SEGLOG_ROW_TAGS_CODE_AT));
    set_row_i32(unit + SEGLOG_SPILLED_SIZE_BYTES_AT, row_i32(row + SEGLOG_ROW_SIZE_BYTES_AT));
    set_row_i32(unit + SEGLOG_SPILLED_QUEUE_AT, queue);
    unit[SEGLOG_SPILLED_IS_KEPT_AT] =
        read_i32(job->records.at + at + SEGLOG_HEADS_0_FLAG_AT) != job->placeholder_flag;
    return true;
}

PyObject *py_spilled_units(PyObject *Py_UNUSED(module), PyObject *args)
{
    enum { ROWS, RECORDS, PLAIN, UNITS, BUFFERS };
    Py_buffer in[BUFFERS];
    long long phy_offset;
    int flag;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*y*Ly*iw*", &in[ROWS], &in[RECORDS], &phy_offset, &in[PLAIN], &flag,
                          &in[UNITS]))
        return NULL;
    size_t count = (size_t)in[ROWS].len / SEGLOG_ROW_SIZE, made = 0;
    struct units_job job = {span_in(&in[RECORDS]), phy_offset, span_in(&in[PLAIN]), flag};
    bool is_within = phy_offset >= 0 && (size_t)in[UNITS].len / SEGLOG_SPILLED_SIZE >= count;
    const uint8_t *rows = in[ROWS].buf;
    uint8_t *units = in[UNITS].buf;
    Py_BEGIN_ALLOW_THREADS
    for (size_t i = 0; is_within && i < count; i++)
        made += unit_of(&job, rows + i * SEGLOG_ROW_SIZE, units + made * SEGLOG_SPILLED_SIZE, &is_within);
    Py_END_ALLOW_THREADS
    if (is_within)
        result = PyLong_FromSize_t(made);
    else
        PyErr_SetString(PyExc_ValueError, "rows are of the records and queues, and units have room");
    buffers_release(in, BUFFERS);
    return result;
}

/* Sorts units by queue: counts them, then writes each behind the units of its queue. `ends` gets the queues'
 * ends. */
static bool units_sort(const uint8_t *units, size_t count, size_t *ends, size_t queue_count, uint8_t *sorted)
{
    for (size_t i = 0; i < count; i++) {
        int32_t queue = row_i32(units + i * SEGLOG_SPILLED_SIZE + SEGLOG_SPILLED_QUEUE_AT);
        if (queue < 0 || (size_t)queue >= queue_count)
            return false;
        ends[queue]++;
    }
    for (size_t i = 0, end = 0; i < queue_count; i++) {
        size_t size = ends[i];
        ends[i] = end;
        end += size;
    }
    for (size_t i = 0; i < count; i++) {
        const uint8_t *unit = units + i * SEGLOG_SPILLED_SIZE;
        memcpy(sorted + ends[row_i32(unit + SEGLOG_SPILLED_QUEUE_AT)]++ * SEGLOG_SPILLED_SIZE, unit,
               SEGLOG_SPILLED_SIZE);
    }
    return true;
}

static PyObject *starts_of(const size_t *ends, size_t queue_count)
{
    PyObject *starts = PyList_New((Py_ssize_t)queue_count + 1);
    for (size_t i = 0; starts && i <= queue_count; i++) {
        PyObject *start = PyLong_FromSize_t(i ? ends[i - 1] : 0);
        if (!start || PyList_SetItem(starts, (Py_ssize_t)i, start) < 0)
            Py_CLEAR(starts);
    }
    return starts;
}

PyObject *py_units_by_queue(PyObject *Py_UNUSED(module), PyObject *args)
{
    enum { UNITS, SORTED, BUFFERS };
    Py_buffer in[BUFFERS];
    unsigned int queue_count;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*Iw*", &in[UNITS], &queue_count, &in[SORTED]))
        return NULL;
    size_t *ends = PyMem_Calloc((size_t)queue_count + 1, sizeof *ends);
    size_t count = (size_t)in[UNITS].len / SEGLOG_SPILLED_SIZE;
    if (!ends) {
        PyErr_NoMemory();
    } else {
        bool is_right = in[SORTED].len >= in[UNITS].len;
        Py_BEGIN_ALLOW_THREADS
        is_right = is_right && units_sort(in[UNITS].buf, count, ends, queue_count, in[SORTED].buf);
        Py_END_ALLOW_THREADS
        if (is_right)
            result = starts_of(ends, queue_count);
        else
            PyErr_SetString(PyExc_ValueError, "units are of queues that there are, and have room");
        PyMem_Free(ends);
    }
    buffers_release(in, BUFFERS);
    return result;
}
