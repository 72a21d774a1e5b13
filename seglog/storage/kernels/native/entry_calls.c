#include "entry_calls.h"

#include "../layout.h"
#include "index_entries.h"

static size_t count_of(const Py_buffer *entries)
{
    return (size_t)entries->len / SEGLOG_INDEX_ENTRY_SIZE;
}

PyObject *py_entries_extent(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer entries;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*", &entries))
        return NULL;
    if (count_of(&entries)) {
        struct entries_extent extent;
        Py_BEGIN_ALLOW_THREADS
        extent = entries_extent_of(entries.buf, count_of(&entries));
        Py_END_ALLOW_THREADS
        PyObject *is_sorted = PyBool_FromLong(extent.is_sorted);
        result = Py_BuildValue("(LLN)", (long long)extent.least, (long long)extent.greatest, is_sorted);
    } else {
        PyErr_SetString(PyExc_ValueError, "no entries lead nowhere");
    }
    PyBuffer_Release(&entries);
    return result;
}

static PyObject *list_of(const struct wrong_entry *wrong, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *one = Py_BuildValue("(Ii)", wrong[i].number, (int)wrong[i].previous);
        if (!one || PyList_SetItem(list, (Py_ssize_t)i, one) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *follow(const Py_buffer *entries, unsigned int first, const Py_buffer *newest, unsigned int most)
{
    size_t slot_count = (size_t)newest->len / sizeof(int32_t);
    if (slot_count == 0 || slot_count > SEGLOG_MAX_INT || count_of(entries) > SEGLOG_MAX_INT - (size_t)first) {
        PyErr_SetString(PyExc_ValueError, "a file has slots, and its entries have numbers");
        return NULL;
    }
    struct wrong_entry *wrong = PyMem_Calloc(most ? most : 1, sizeof *wrong);
    if (!wrong)
        return PyErr_NoMemory();
    struct newest_entries chains = {newest->buf, (uint32_t)slot_count};
    size_t found;
    Py_BEGIN_ALLOW_THREADS
    found = entries_follow(entries->buf, count_of(entries), first, chains, wrong, most);
    Py_END_ALLOW_THREADS
    PyObject *list = list_of(wrong, found < most ? found : most);
    PyMem_Free(wrong);
    return list;
}

PyObject *py_follow_entries(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer entries, newest;
    unsigned int first, most;
    if (!PyArg_ParseTuple(args, "y*Iw*I", &entries, &first, &newest, &most))
        return NULL;
    PyObject *result = NULL;
    if (first <= SEGLOG_MAX_INT)
        result = follow(&entries, first, &newest, most);
    else
        PyErr_SetString(PyExc_ValueError, "entries have numbers of 31 bits");
    PyBuffer_Release(&newest);
    PyBuffer_Release(&entries);
    return result;
}

PyObject *py_entries_stand_for(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer rows, entries;
    long long begin_ms;
    int starts_file;
    bool stand;
    if (!PyArg_ParseTuple(args, "y*y*Lp", &rows, &entries, &begin_ms, &starts_file))
        return NULL;
    size_t count = (size_t)rows.len / SEGLOG_KEY_ROW_SIZE;
    if (count != count_of(&entries)) {
        stand = false;
    } else {
        Py_BEGIN_ALLOW_THREADS
        stand = entries_stand_for(rows.buf, entries.buf, count, begin_ms, starts_file);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&entries);
    PyBuffer_Release(&rows);
    return PyBool_FromLong(stand);
}
