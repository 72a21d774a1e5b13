#include "found_type.h"

#include <stddef.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    PyObject *status, *lost, *run_list, *record_list, *decoded;
    long long next_offset, min_offset, max_offset;
    struct found_records records;
} Found;

static PyTypeObject *found_type;
static PyObject *nothing_lost;

void found_free(struct found_records *records)
{
    for (size_t i = 0; i < records->run_count; i++)
        Py_DECREF(records->runs[i].memory);
    PyMem_Free(records->runs);
    PyMem_Free(records->sizes);
}

PyObject *found_new(PyTypeObject *type, allocfunc allocate, const struct found_place *place,
                    struct found_records *records)
{
    Found *found = (Found *)allocate(type, 0);
    if (!found) {
        found_free(records);
        return NULL;
    }
    found->status = Py_NewRef(place->status);
    found->lost = Py_NewRef(nothing_lost);
    found->next_offset = place->next_offset;
    found->min_offset = place->min_offset;
    found->max_offset = place->max_offset;
    found->records = *records;
    return (PyObject *)found;
}

static void found_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Found *found = (Found *)self;
    found_free(&found->records);
    Py_XDECREF(found->status);
    Py_XDECREF(found->lost);
    Py_XDECREF(found->run_list);
    Py_XDECREF(found->record_list);
    Py_XDECREF(found->decoded);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* Takes the runs that Python gives, each a view of bytes. */
static bool take_runs(PyObject *runs, struct found_records *records)
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
        records->runs[records->run_count++] = (struct found_run){run, 0, size};
    }
    return true;
}

/* Takes the size of each record; each run is one where Python gives none. */
static bool take_sizes(PyObject *sizes, struct found_records *records)
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

/* Whether the records fill the runs, none of them lying in two. */
static bool fill(const struct found_records *records)
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

static PyObject *found_make(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"status", "next_offset", "min_offset", "max_offset", "runs", "lost", "sizes", NULL};
    struct found_place place;
    struct found_records records = {0};
    PyObject *runs = nothing_lost, *lost = nothing_lost, *sizes = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OLLL|OOO", names, &place.status, &place.next_offset,
                                     &place.min_offset, &place.max_offset, &runs, &lost, &sizes))
        return NULL;
    if (!take_runs(runs, &records) || !take_sizes(sizes, &records)) {
        found_free(&records);
        return NULL;
    }
    if (!fill(&records)) {
        found_free(&records);
        PyErr_SetString(PyExc_ValueError, "the records do not fill the runs");
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Found *found = (Found *)found_new(type, allocate, &place, &records);
    if (found) {
        Py_DECREF(found->lost);
        found->lost = Py_NewRef(lost);
    }
    return (PyObject *)found;
}

PyObject *found_slice(PyObject *memory, int64_t start, int64_t size_bytes)
{
    PyObject *first = PyLong_FromLongLong(start);
    PyObject *end = PyLong_FromLongLong(start + size_bytes);
    PyObject *slice = first && end ? PySlice_New(first, end, NULL) : NULL;
    PyObject *part = slice ? PyObject_GetItem(memory, slice) : NULL;
    Py_XDECREF(first);
    Py_XDECREF(end);
    Py_XDECREF(slice);
    return part;
}

static PyObject *new_runs(const struct found_records *records)
{
    PyObject *list = PyList_New((Py_ssize_t)records->run_count);
    for (size_t i = 0; list && i < records->run_count; i++) {
        const struct found_run *run = &records->runs[i];
        PyObject *view = found_slice(run->memory, run->start, run->size_bytes);
        if (!view || PyList_SetItem(list, (Py_ssize_t)i, view) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *new_records(const struct found_records *records)
{
    PyObject *list = PyList_New((Py_ssize_t)records->count);
    size_t record = 0;
    for (size_t i = 0; list && i < records->run_count; i++) {
        const struct found_run *run = &records->runs[i];
        for (int64_t at = 0; list && at < run->size_bytes; at += records->sizes[record++]) {
            PyObject *view = found_slice(run->memory, run->start + at, records->sizes[record]);
            if (!view || PyList_SetItem(list, (Py_ssize_t)record, view) < 0)
                Py_CLEAR(list);
        }
    }
    return list;
}

/* Returns a list that is made once. Making it may let other threads run, one of which may make it too. */
static PyObject *made_once(PyObject **list, const struct found_records *records,
                           PyObject *(*make)(const struct found_records *))
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

static PyObject *found_runs(PyObject *self, void *Py_UNUSED(closure))
{
    Found *found = (Found *)self;
    return made_once(&found->run_list, &found->records, new_runs);
}

static PyObject *found_records(PyObject *self, void *Py_UNUSED(closure))
{
    Found *found = (Found *)self;
    return made_once(&found->record_list, &found->records, new_records);
}

static Py_ssize_t found_count(PyObject *self)
{
    return (Py_ssize_t)((Found *)self)->records.count;
}

static PyMemberDef members[] = {
    {"status", T_OBJECT_EX, offsetof(Found, status), READONLY, NULL},
    {"next_offset", T_LONGLONG, offsetof(Found, next_offset), READONLY, NULL},
    {"min_offset", T_LONGLONG, offsetof(Found, min_offset), READONLY, NULL},
    {"max_offset", T_LONGLONG, offsetof(Found, max_offset), READONLY, NULL},
    {"lost", T_OBJECT_EX, offsetof(Found, lost), READONLY, NULL},
    {"decoded", T_OBJECT, offsetof(Found, decoded), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef computed[] = {
    {"runs", found_runs, NULL, NULL, NULL},
    {"records", found_records, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)found_make},
    {Py_tp_dealloc, (void *)found_dealloc},
    {Py_tp_members, members},
    {Py_tp_getset, computed},
    {Py_sq_length, (void *)found_count},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "seglog.storage.kernels._native.Found",
    .basicsize = sizeof(Found),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

bool found_type_is(PyObject *type)
{
    return PyType_Check(type) && PyType_IsSubtype((PyTypeObject *)type, found_type);
}

int found_type_add(PyObject *module)
{
    nothing_lost = PyTuple_New(0);
    found_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (!nothing_lost || !found_type)
        return -1;
    return PyModule_AddObjectRef(module, "Found", (PyObject *)found_type);
}
