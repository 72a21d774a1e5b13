#include "unit_calls.h"

#include "../layout.h"
#include "groups.h"
#include "units.h"

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

static PyObject *list_of(const struct group *groups, size_t group_count)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < group_count; i++) {
        const struct group *group = &groups[i];
        if (!group->count)
            continue;
        PyObject *one = Py_BuildValue("(nnLLL)", (Py_ssize_t)i, (Py_ssize_t)group->count,
                                      (long long)group->size_bytes, (long long)group->least_ms,
                                      (long long)group->greatest_ms);
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
    is_grouped =
        rows_group(rows->buf, (size_t)rows->len / SEGLOG_ROW_SIZE, groups, group_count, sorted->buf);
    Py_END_ALLOW_THREADS
    PyObject *result = is_grouped ? list_of(groups, group_count) : Py_BuildValue("");
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
