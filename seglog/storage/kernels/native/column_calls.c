#include "column_calls.h"

#include "guarded_call.h"
#include "property_map.h"

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

/* The strings of a buffer; false with an exception if they are none of it. */
static bool take_strings(struct strings *strings, const Py_buffer *view, const Py_buffer *starts,
                         const Py_buffer *sizes)
{
    strings->buffer = span_of(view->buf, (size_t)view->len);
    strings->starts = starts->buf;
    strings->sizes = sizes->buf;
    strings->count = (size_t)starts->len / sizeof(int64_t);
    if (starts->len == sizes->len && strings_lie_within(strings))
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
    Py_buffer view, starts, sizes, target;
    PyObject *result = NULL;
    struct copy_job job;
    if (!PyArg_ParseTuple(args, "y*y*y*w*", &view, &starts, &sizes, &target))
        return NULL;
    job.target = target.buf;
    job.room = (size_t)target.len;
    if (take_strings(&job.strings, &view, &starts, &sizes) && call_guarded(&view, copy_job, &job))
        result = job.fits ? Py_NewRef(Py_None) : no_room();
    PyBuffer_Release(&target);
    PyBuffer_Release(&sizes);
    PyBuffer_Release(&starts);
    PyBuffer_Release(&view);
    return result;
}

PyObject *py_property_map(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view, starts, sizes, row_ends, name_ends, names, value_ends, values;
    PyObject *result = NULL;
    struct map_job job = {.is_whole = false};
    if (!PyArg_ParseTuple(args, "y*y*y*w*w*w*w*w*", &view, &starts, &sizes, &row_ends, &name_ends, &names,
                          &value_ends, &values))
        return NULL;
    job.map.row_ends = row_ends.buf;
    job.map.name_ends = name_ends.buf;
    job.map.value_ends = value_ends.buf;
    job.map.names = names.buf;
    job.map.values = values.buf;
    job.map.entry_room = (size_t)name_ends.len / sizeof(int32_t);
    job.map.name_room = (size_t)names.len;
    job.map.value_room = (size_t)values.len;
    if (take_strings(&job.properties, &view, &starts, &sizes)) {
        if ((size_t)row_ends.len != job.properties.count * sizeof(int32_t) ||
            value_ends.len != name_ends.len || names.len > INT32_MAX || values.len > INT32_MAX)
            no_room();
        else if (call_guarded(&view, map_job, &job))
            result = PyLong_FromSsize_t(job.is_whole ? (Py_ssize_t)job.map.count : -1);
    }
    PyBuffer_Release(&values);
    PyBuffer_Release(&value_ends);
    PyBuffer_Release(&names);
    PyBuffer_Release(&name_ends);
    PyBuffer_Release(&row_ends);
    PyBuffer_Release(&sizes);
    PyBuffer_Release(&starts);
    PyBuffer_Release(&view);
    return result;
}

PyObject *py_property_values(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view, starts, sizes, name, value_starts, value_sizes;
    PyObject *result = NULL;
    struct value_job job;
    if (!PyArg_ParseTuple(args, "y*y*y*y*w*w*", &view, &starts, &sizes, &name, &value_starts, &value_sizes))
        return NULL;
    job.name = span_of(name.buf, (size_t)name.len);
    job.starts = value_starts.buf;
    job.sizes = value_sizes.buf;
    if (take_strings(&job.properties, &view, &starts, &sizes)) {
        if (name.len == 0 || value_starts.len != starts.len || value_sizes.len != starts.len)
            no_room();
        else if (call_guarded(&view, value_job, &job))
            result = Py_NewRef(Py_None);
    }
    PyBuffer_Release(&value_sizes);
    PyBuffer_Release(&value_starts);
    PyBuffer_Release(&name);
    PyBuffer_Release(&sizes);
    PyBuffer_Release(&starts);
    PyBuffer_Release(&view);
    return result;
}
