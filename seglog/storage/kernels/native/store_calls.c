/* The calls of a store that appends and reads enter: a base class of MessageStore, made of a Python class that
 * states their signatures and documents them. A call is tried natively; where that is not possible, the
 * method of the Python class makes it, with the same arguments.
 */

#include "fast_path.h"
#include "reads.h"

enum call_name { PUT, APPEND, PUT_BATCH, APPEND_BATCH, GET, CALLS };

typedef struct {
    PyObject_HEAD FastPath *fast_path; /* NULL for a store that takes no appends, or not natively */
    PyObject *reads;                   /* of the type Reads, or NULL */
} StoreCalls;

static const char *const call_texts[CALLS] = {
    [PUT] = "put",
    [APPEND] = "append",
    [PUT_BATCH] = "put_batch",
    [APPEND_BATCH] = "append_batch",
    [GET] = "get",
};

static PyObject *twins[CALLS], *texts[CALLS]; /* methods of the Python class, and what they are documented by */

static PyObject *or_twin(PyObject *result, enum call_name name, PyObject *self, PyObject *const *args,
                         Py_ssize_t count, PyObject *names)
{
    if (result || PyErr_Occurred())
        return result;
    return call_method(twins[name], self, args, count, names);
}

#define APPENDING(function, native, name)                                                                    \
    static PyObject *function(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)      \
    {                                                                                                        \
        FastPath *path = ((StoreCalls *)self)->fast_path;                                                    \
        return or_twin(path ? native(path, args, count, names) : NULL, name, self, args, count, names);      \
    }

APPENDING(calls_put, fast_path_put, PUT)
APPENDING(calls_append, fast_path_append, APPEND)
APPENDING(calls_put_batch, fast_path_put_batch, PUT_BATCH)
APPENDING(calls_append_batch, fast_path_append_batch, APPEND_BATCH)

static PyObject *calls_get(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    PyObject *reads = ((StoreCalls *)self)->reads;
    return or_twin(reads ? reads_get(reads, args, count, names) : NULL, GET, self, args, count, names);
}

/* Takes a fast path and reads, as far as they are native, once; returns whether the fast path is. */
static PyObject *calls_serve(PyObject *object, PyObject *args)
{
    PyObject *path, *reads;
    StoreCalls *self = (StoreCalls *)object;
    if (!PyArg_ParseTuple(args, "OO", &path, &reads))
        return NULL;
    if (self->fast_path || self->reads)
        return PyErr_Format(PyExc_RuntimeError, "the calls are served already");
    if (as_fast_path(path))
        self->fast_path = (FastPath *)Py_NewRef(path);
    if (is_reads(reads))
        self->reads = Py_NewRef(reads);
    return PyBool_FromLong(self->fast_path != NULL);
}

static int calls_traverse(PyObject *object, visitproc visit, void *arg)
{
    StoreCalls *self = (StoreCalls *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT((PyObject *)self->fast_path);
    Py_VISIT(self->reads);
    return 0;
}

static int calls_clear(PyObject *object)
{
    StoreCalls *self = (StoreCalls *)object;
    PyObject *path = (PyObject *)self->fast_path;
    self->fast_path = NULL;
    Py_XDECREF(path);
    Py_CLEAR(self->reads);
    return 0;
}

static void calls_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    calls_clear(object);
    object_free(object);
}

static PyMethodDef methods[] = {
    [PUT] = FAST_METHOD("put", calls_put),
    [APPEND] = FAST_METHOD("append", calls_append),
    [PUT_BATCH] = FAST_METHOD("put_batch", calls_put_batch),
    [APPEND_BATCH] = FAST_METHOD("append_batch", calls_append_batch),
    [GET] = FAST_METHOD("get", calls_get),
    {"_serve_natively", calls_serve, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, (void *)calls_dealloc},
    {Py_tp_traverse, (void *)calls_traverse},
    {Py_tp_clear, (void *)calls_clear},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "seglog.storage.kernels._native.StoreCalls",
    .basicsize = sizeof(StoreCalls),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

/* The class for a Python class without instance fields, and a dict of what its methods are documented by. */
PyObject *py_store_calls(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *python, *documents;
    if (!PyArg_ParseTuple(args, "O!O!", &PyType_Type, &python, &PyDict_Type, &documents))
        return NULL;
    if (twins[PUT])
        return PyErr_Format(PyExc_RuntimeError, "there is one class of calls");
    for (int i = 0; i < CALLS; i++) {
        PyObject *text = PyDict_GetItemString(documents, call_texts[i]);
        if (!text)
            return PyErr_Format(PyExc_KeyError, "%s", call_texts[i]);
        methods[i].ml_doc = PyUnicode_AsUTF8AndSize(text, NULL);
        PyObject *twin = methods[i].ml_doc ? PyObject_GetAttrString(python, call_texts[i]) : NULL;
        if (!twin)
            return NULL;
        texts[i] = Py_NewRef(text); /* the type points into it */
        twins[i] = twin;
    }
    PyObject *bases = PyTuple_Pack(1, python);
    PyObject *type = bases ? PyType_FromSpecWithBases(&spec, bases) : NULL;
    Py_XDECREF(bases);
    return type;
}
