#include "tag_set.h"

#include <stddef.h>
#include <string.h>

#include "../layout.h"
#include "properties.h"

/* codes: `count` of them. tags: a tuple of bytes, NULL if codes are enough. */
struct TagSet {
    PyObject_HEAD
    int64_t *codes;
    size_t count;
    PyObject *tags;
};

static PyTypeObject *tag_set_type;

bool tag_set_has_code(const TagSet *tags, int64_t tags_code)
{
    for (size_t i = 0; i < tags->count; i++)
        if (tags->codes[i] == tags_code)
            return true;
    return false;
}

bool tag_set_is_loose(const TagSet *tags)
{
    return !tags->tags;
}

bool tag_set_has_tag(const TagSet *tags, struct span properties)
{
    static const char name[] = SEGLOG_TAGS "\001";
    struct span found = property_value(properties, span_of((const uint8_t *)name, sizeof name - 1));
    for (Py_ssize_t i = 0; found.size && i < PyTuple_Size(tags->tags); i++) {
        char *tag;
        Py_ssize_t size;
        PyBytes_AsStringAndSize(PyTuple_GetItem(tags->tags, i), &tag, &size);
        if ((size_t)size == found.size && memcmp(tag, found.at, found.size) == 0)
            return true;
    }
    return false;
}

static bool are_bytes(PyObject *tags)
{
    if (!PyTuple_Check(tags))
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_Size(tags); i++)
        if (!PyBytes_Check(PyTuple_GetItem(tags, i)))
            return false;
    return true;
}

static bool take_codes(TagSet *set, PyObject *codes)
{
    Py_ssize_t count = PyTuple_Size(codes);
    set->codes = PyMem_Calloc((size_t)count + 1, sizeof *set->codes);
    if (!set->codes) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        set->codes[set->count] = PyLong_AsLongLong(PyTuple_GetItem(codes, i));
        if (set->codes[set->count++] == -1 && PyErr_Occurred())
            return false;
    }
    return true;
}

static PyObject *tag_set_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *codes, *tags;
    if (keywords && PyDict_Size(keywords)) {
        PyErr_SetString(PyExc_TypeError, "TagSet takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &codes, &tags))
        return NULL;
    if (tags != Py_None && !are_bytes(tags)) {
        PyErr_SetString(PyExc_TypeError, "tags are a tuple of bytes, or None");
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    TagSet *set = (TagSet *)allocate(type, 0);
    if (!set)
        return NULL;
    set->tags = tags == Py_None ? NULL : Py_NewRef(tags);
    if (!take_codes(set, codes)) {
        Py_DECREF(set);
        return NULL;
    }
    return (PyObject *)set;
}

static void tag_set_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    TagSet *set = (TagSet *)self;
    PyMem_Free(set->codes);
    Py_XDECREF(set->tags);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)tag_set_new},
    {Py_tp_dealloc, (void *)tag_set_dealloc},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "seglog.storage.kernels._native.TagSet",
    .basicsize = sizeof(TagSet),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

const TagSet *as_tag_set(PyObject *value)
{
    return value && Py_IS_TYPE(value, tag_set_type) ? (const TagSet *)value : NULL;
}

int tag_set_add(PyObject *module)
{
    tag_set_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return tag_set_type ? PyModule_AddObjectRef(module, "TagSet", (PyObject *)tag_set_type) : -1;
}
