/* The extension module seglog.storage.kernels._native; what it holds is said in _native.pyi.
 */

#include "python_api.h"

#include "../layout.h"
#include "beneath.h"
#include "column_calls.h"
#include "crc32.h"
#include "decoder_type.h"
#include "draft_type.h"
#include "entry_calls.h"
#include "found_type.h"
#include "index_calls.h"
#include "key_calls.h"
#include "lane_type.h"
#include "maps.h"
#include "populate.h"
#include "queues.h"
#include "reads_type.h"
#include "sum_calls.h"
#include "tag_set.h"
#include "take.h"
#include "tips.h"
#include "unit_calls.h"
#include "walk_calls.h"

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

static PyObject *py_populate(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view;
    if (!PyArg_ParseTuple(args, "w*", &view))
        return NULL;
    bool is_ready;
    Py_BEGIN_ALLOW_THREADS
    is_ready = populate(span_in(&view));
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&view);
    return PyBool_FromLong(is_ready);
}

static PyMethodDef methods[] = {
    {"crc32", py_crc32, METH_VARARGS, NULL},
    {"crc32_by_table", py_crc32_by_table, METH_VARARGS, NULL},
    {"walk", py_walk, METH_VARARGS, NULL},
    {"walk_stretch", py_walk_stretch, METH_VARARGS, NULL},
    {"walk_into", py_walk_into, METH_VARARGS, NULL},
    {"find_record", py_find_record, METH_VARARGS, NULL},
    {"index_keys", py_index_keys, METH_VARARGS, NULL},
    {"have_key", py_have_key, METH_VARARGS, NULL},
    {"key_digest", py_key_digest, METH_VARARGS, NULL},
    {"key_digests", py_key_digests, METH_VARARGS, NULL},
    {"key_rows", py_key_rows, METH_VARARGS, NULL},
    {"put_keys", py_put_keys, METH_VARARGS, NULL},
    {"entries_extent", py_entries_extent, METH_VARARGS, NULL},
    {"follow_entries", py_follow_entries, METH_VARARGS, NULL},
    {"entries_stand_for", py_entries_stand_for, METH_VARARGS, NULL},
    {"group_rows", py_group_rows, METH_VARARGS, NULL},
    {"block_sums", py_block_sums, METH_VARARGS, NULL},
    {"rows_stand_in", py_rows_stand_in, METH_VARARGS, NULL},
    {"copy_strings", py_copy_strings, METH_VARARGS, NULL},
    {"property_map", py_property_map, METH_VARARGS, NULL},
    {"property_values", py_property_values, METH_VARARGS, NULL},
    {"populate", py_populate, METH_VARARGS, NULL},
    {"open_beneath", py_open_beneath, METH_VARARGS, NULL},
    {"open_plain", py_open_plain, METH_VARARGS, NULL},
    {"mode_beneath", py_mode_beneath, METH_VARARGS, NULL},
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
