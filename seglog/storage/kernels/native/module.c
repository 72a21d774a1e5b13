/* The extension module seglog.storage.kernels._native; what it holds is said in _native.pyi.
 */

#include "python_api.h"

#include <stdlib.h>

#include "../layout.h"
#include "crc32.h"
#include "decoder_type.h"
#include "draft_type.h"
#include "found_type.h"
#include "index_keys.h"
#include "lane_type.h"
#include "maps.h"
#include "queues.h"
#include "reads_type.h"
#include "tag_set.h"
#include "take.h"
#include "tips.h"
#include "walk.h"

enum { LONG_BYTES = 32 << 10 }; /* worth letting other threads run meanwhile */

static struct span span_in(const Py_buffer *view)
{
    return span_of(view->buf, (size_t)view->len);
}

static PyObject *crc32_with(PyObject *args, uint32_t (*compute)(struct span))
{
    Py_buffer view;
    uint32_t crc;
    if (!PyArg_ParseTuple(args, "y*", &view))
        return NULL;
    if (view.len >= LONG_BYTES) {
        Py_BEGIN_ALLOW_THREADS
        crc = compute(span_in(&view));
        Py_END_ALLOW_THREADS
    } else {
        crc = compute(span_in(&view));
    }
    PyBuffer_Release(&view);
    return PyLong_FromUnsignedLong(crc);
}

static PyObject *py_crc32(PyObject *Py_UNUSED(module), PyObject *args)
{
    return crc32_with(args, crc32_of);
}

static PyObject *py_crc32_by_table(PyObject *Py_UNUSED(module), PyObject *args)
{
    return crc32_with(args, crc32_by_table);
}

/* A physical offset; 1 if it is none that a record could have, -1 with an exception. */
static int as_phy_offset(PyObject *number, int64_t *phy_offset)
{
    int overflow;
    *phy_offset = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (PyErr_Occurred())
        return -1;
    return overflow || *phy_offset < 0;
}

/* The number that the caller has for one queue, -1 with an exception. */
static int32_t ask_number(PyObject *number_of, const struct queue *queue)
{
    PyObject *answer = PyObject_CallFunction(number_of, "y#i", (const char *)queue->topic.at,
                                             (Py_ssize_t)queue->topic.size, (int)queue->id);
    if (!answer)
        return -1;
    long number = PyLong_AsLong(answer);
    Py_DECREF(answer);
    if (!PyErr_Occurred() && (number < 0 || number > INT32_MAX))
        PyErr_SetString(PyExc_OverflowError, "the number of a queue must fit a row");
    return PyErr_Occurred() ? -1 : (int32_t)number;
}

/* Numbers queues as the caller does, in the order in which they appeared. */
static bool renumber(struct walk *walk, PyObject *number_of)
{
    size_t count = walk->queues.count;
    int32_t *numbers = PyMem_Malloc(count ? count * sizeof *numbers : 1);
    if (!numbers) {
        PyErr_NoMemory();
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        numbers[i] = ask_number(number_of, &walk->queues.list[i]);
        if (numbers[i] < 0) {
            PyMem_Free(numbers);
            return false;
        }
    }
    walk_renumber(walk, numbers);
    PyMem_Free(numbers);
    return true;
}

static PyObject *as_list(const size_t *positions, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *position = PyLong_FromSize_t(positions[i]);
        if (!position || PyList_SetItem(list, (Py_ssize_t)i, position) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *as_result(struct walk *walk, PyObject *number_of)
{
    if (!renumber(walk, number_of))
        return NULL;
    PyObject *rows =
        PyBytes_FromStringAndSize((const char *)walk->rows, (Py_ssize_t)(walk->count * SEGLOG_ROW_SIZE));
    if (!rows)
        return NULL;
    PyObject *saying_more = as_list(walk->saying_more, walk->more_count);
    if (!saying_more) {
        Py_DECREF(rows);
        return NULL;
    }
    return Py_BuildValue("(NNn)", rows, saying_more, (Py_ssize_t)walk->position);
}

static PyObject *py_walk(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view;
    PyObject *offset, *number_of, *result = NULL;
    int verify;
    int64_t phy_offset;
    struct walk walk = {0};
    if (!PyArg_ParseTuple(args, "y*OpO", &view, &offset, &verify, &number_of))
        return NULL;
    int is_nowhere = as_phy_offset(offset, &phy_offset);
    bool has_memory = true;
    if (is_nowhere == 0) {
        Py_BEGIN_ALLOW_THREADS
        has_memory = walk_on(&walk, span_in(&view), phy_offset, verify);
        Py_END_ALLOW_THREADS
    }
    if (!has_memory)
        PyErr_NoMemory();
    else if (is_nowhere >= 0)
        result = as_result(&walk, number_of);
    walk_free(&walk);
    PyBuffer_Release(&view);
    return result;
}

static PyObject *py_find_record(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view;
    PyObject *offset;
    Py_ssize_t start;
    int64_t phy_offset;
    if (!PyArg_ParseTuple(args, "y*On", &view, &offset, &start))
        return NULL;
    size_t found = (size_t)view.len;
    int is_nowhere = as_phy_offset(offset, &phy_offset);
    if (is_nowhere == 0) {
        Py_BEGIN_ALLOW_THREADS
        found = find_record(span_in(&view), phy_offset, start > 0 ? (size_t)start : 0);
        Py_END_ALLOW_THREADS
    }
    bool is_found = found < (size_t)view.len;
    PyBuffer_Release(&view);
    if (is_nowhere < 0)
        return NULL;
    return PyLong_FromSsize_t(is_found ? (Py_ssize_t)found : -1);
}

static PyObject *py_index_keys(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view;
    PyObject *offset, *result = NULL;
    int with_tags;
    int64_t phy_offset;
    struct index_keys keys = {0};
    if (!PyArg_ParseTuple(args, "y*Op", &view, &offset, &with_tags))
        return NULL;
    int is_nowhere = as_phy_offset(offset, &phy_offset);
    bool has_memory = true;
    if (is_nowhere == 0) {
        Py_BEGIN_ALLOW_THREADS
        has_memory = index_keys_of(&keys, span_in(&view), phy_offset, with_tags);
        Py_END_ALLOW_THREADS
    }
    if (!has_memory)
        PyErr_NoMemory();
    else if (is_nowhere >= 0)
        result = PyBytes_FromStringAndSize((const char *)keys.rows,
                                           (Py_ssize_t)(keys.count * SEGLOG_KEY_ROW_SIZE));
    free(keys.rows);
    PyBuffer_Release(&view);
    return result;
}

static PyMethodDef methods[] = {
    {"crc32", py_crc32, METH_VARARGS, NULL},
    {"crc32_by_table", py_crc32_by_table, METH_VARARGS, NULL},
    {"walk", py_walk, METH_VARARGS, NULL},
    {"find_record", py_find_record, METH_VARARGS, NULL},
    {"index_keys", py_index_keys, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* Topics collide in other ways in every process, as keys of dicts do. */
static bool seed_hashes(void)
{
    PyObject *text = PyUnicode_FromString("seglog");
    Py_hash_t hash = text ? PyObject_Hash(text) : -1;
    Py_XDECREF(text);
    queues_seed((uint64_t)hash);
    return hash != -1;
}

static int prepare(PyObject *module)
{
    crc32_prepare();
    if (!seed_hashes() || !take_prepare() || draft_type_add(module) < 0 || tips_add(module) < 0 ||
        lane_type_add(module) < 0 || found_type_add(module) < 0 || maps_add(module) < 0 ||
        tag_set_add(module) < 0 || reads_type_add(module) < 0 || decoder_type_add(module) < 0)
        return -1;
    return PyModule_AddStringConstant(module, "CRC32_WAY", crc32_multiplies() ? "multiply" : "table");
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)prepare},
    {0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "seglog.storage.kernels._native",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&definition);
}
