#include "maps.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

#include "../layout.h"

/* Files so far apart are no sequence; they are left to Python. */
enum { MAX_FILES = 1 << 16, GOOD = 1 };

static PyTypeObject *maps_type;

struct file_map *maps_find(const Maps *maps, int64_t offset)
{
    int64_t at = offset / maps->file_bytes - maps->first_number;
    if (offset < 0 || at < 0 || (uint64_t)at >= maps->count)
        return NULL;
    struct file_map *file = &maps->files[at];
    return file->view && !file->is_odd ? file : NULL;
}

static bool blocks_are_good(const Maps *maps, const struct file_map *file, int64_t start, int64_t end)
{
    const uint8_t *states = file->states.buf;
    int64_t first = start - start % maps->file_bytes;
    for (int64_t block = (start - first) / SEGLOG_SEAL_BLOCK_BYTES;
         first + block * SEGLOG_SEAL_BLOCK_BYTES < end; block++)
        if (block >= file->states.len || states[block] != GOOD)
            return false;
    return true;
}

bool maps_are_sound(const Maps *maps, const struct file_map *file, int64_t start, int64_t end)
{
    if (start >= maps->guarded_end)
        return true;
    return file->states.obj &&
           blocks_are_good(maps, file, start, end < maps->guarded_end ? end : maps->guarded_end);
}

int file_is_whole(const Maps *maps, struct file_map *file, int64_t now_ms)
{
    file->checked_ms = now_ms;
    if (!file->length_now)
        return 1;
    PyObject *length_now = Py_NewRef(file->length_now);
    int64_t file_bytes = maps->file_bytes;
    PyObject *length = PyObject_CallNoArgs(length_now);
    Py_DECREF(length_now);
    if (!length)
        return -1;
    long long found = PyLong_AsLongLong(length);
    Py_DECREF(length);
    if (found == -1 && PyErr_Occurred())
        return -1;
    return found >= file_bytes;
}

/* Takes what a file holds out of the table before it gives it up: that may run anything. */
static void unmap(struct file_map *file)
{
    struct file_map old = *file;
    file->view = NULL;
    if (!old.view)
        return;
    PyBuffer_Release(&old.buffer);
    Py_XDECREF(old.length_now);
    Py_DECREF(old.view);
}

static PyObject *maps_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    long long file_bytes;
    if (keywords && PyDict_Size(keywords)) {
        PyErr_SetString(PyExc_TypeError, "Maps takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "L", &file_bytes))
        return NULL;
    if (file_bytes < 1) {
        PyErr_SetString(PyExc_ValueError, "a file has a length");
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Maps *maps = (Maps *)allocate(type, 0);
    if (maps)
        maps->file_bytes = file_bytes;
    return (PyObject *)maps;
}

static void maps_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Maps *maps = (Maps *)self;
    for (size_t i = 0; i < maps->count; i++) {
        unmap(&maps->files[i]);
        if (maps->files[i].states.obj)
            PyBuffer_Release(&maps->files[i].states);
    }
    PyMem_Free(maps->files);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* Makes the table reach from `first` to the file behind `last`. */
static bool extend(Maps *maps, int64_t first, int64_t last)
{
    size_t count = (size_t)(last - first + 1);
    struct file_map *files = PyMem_Calloc(count, sizeof *files);
    if (!files) {
        PyErr_NoMemory();
        return false;
    }
    if (maps->count)
        memcpy(files + (maps->first_number - first), maps->files, maps->count * sizeof *files);
    PyMem_Free(maps->files);
    maps->files = files;
    maps->count = count;
    maps->first_number = first;
    return true;
}

/* The place for the file that begins at `offset`; NULL with an exception, or without one for a file so far
 * from the others that it gets none.
 */
static struct file_map *place(Maps *maps, int64_t offset)
{
    if (offset < 0) {
        PyErr_SetString(PyExc_ValueError, "no file begins there");
        return NULL;
    }
    int64_t number = offset / maps->file_bytes;
    int64_t end = maps->first_number + (int64_t)maps->count;
    int64_t first = maps->count && maps->first_number < number ? maps->first_number : number;
    int64_t last = maps->count && end - 1 > number ? end - 1 : number;
    if (last - first >= MAX_FILES)
        return NULL;
    bool is_inside = maps->count && number >= maps->first_number && number < end;
    if (!is_inside && !extend(maps, first, last))
        return NULL;
    return &maps->files[number - maps->first_number];
}

/* The place that an argument names if there is one already. */
static struct file_map *known_place(const Maps *maps, PyObject *offset)
{
    long long first = PyLong_AsLongLong(offset);
    if (first == -1 && PyErr_Occurred())
        return NULL;
    int64_t at = first / maps->file_bytes - maps->first_number;
    return first >= 0 && at >= 0 && (uint64_t)at < maps->count ? &maps->files[at] : NULL;
}

static PyObject *none_unless_error(void)
{
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *maps_set(PyObject *self, PyObject *args)
{
    Maps *maps = (Maps *)self;
    PyObject *view, *length_now;
    long long offset;
    Py_buffer buffer;
    if (!PyArg_ParseTuple(args, "LOO", &offset, &view, &length_now))
        return NULL;
    struct file_map *file = place(maps, offset);
    if (!file)
        return none_unless_error();
    unmap(file);
    if (PyObject_GetBuffer(view, &buffer, PyBUF_SIMPLE) < 0)
        return NULL;
    file = place(maps, offset);
    if (!file || file->view || buffer.len < maps->file_bytes) {
        PyBuffer_Release(&buffer);
        return none_unless_error();
    }
    file->view = Py_NewRef(view);
    file->length_now = length_now == Py_None ? NULL : Py_NewRef(length_now);
    file->buffer = buffer;
    file->memory = buffer.buf;
    file->checked_ms = INT64_MIN;
    Py_RETURN_NONE;
}

static PyObject *maps_drop(PyObject *self, PyObject *offset)
{
    struct file_map *file = known_place((Maps *)self, offset);
    if (file)
        unmap(file);
    return none_unless_error();
}

static PyObject *maps_refuse(PyObject *self, PyObject *offset)
{
    long long first = PyLong_AsLongLong(offset);
    struct file_map *file = first == -1 && PyErr_Occurred() ? NULL : place((Maps *)self, first);
    if (file)
        file->is_odd = true;
    return none_unless_error();
}

static PyObject *maps_know(PyObject *self, PyObject *args)
{
    PyObject *offset, *states;
    if (!PyArg_ParseTuple(args, "OO", &offset, &states))
        return NULL;
    struct file_map *file = known_place((Maps *)self, offset);
    if (file && !file->states.obj && PyObject_GetBuffer(states, &file->states, PyBUF_SIMPLE) < 0)
        return NULL;
    return none_unless_error();
}

static PyMemberDef members[] = {
    {"guarded_end", T_LONGLONG, offsetof(Maps, guarded_end), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef methods[] = {
    {"set", maps_set, METH_VARARGS, NULL},
    {"drop", maps_drop, METH_O, NULL},
    {"refuse", maps_refuse, METH_O, NULL},
    {"know", maps_know, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)maps_new},
    {Py_tp_dealloc, (void *)maps_dealloc},
    {Py_tp_members, members},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "seglog.storage.kernels._native.Maps",
    .basicsize = sizeof(Maps),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

Maps *as_maps(PyObject *value)
{
    if (Py_IS_TYPE(value, maps_type))
        return (Maps *)value;
    PyErr_SetString(PyExc_TypeError, "Maps expected");
    return NULL;
}

int maps_add(PyObject *module)
{
    maps_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return maps_type ? PyModule_AddObjectRef(module, "Maps", (PyObject *)maps_type) : -1;
}
