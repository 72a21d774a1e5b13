/* Creates objects of frozen dataclasses with slots without a step in Python for each field.
 *
 * The `__init__` of the dataclass stays the reference: it does calls in an unusual form, and raises the
 * errors of wrong calls.
 */

#include "python_api.h"

enum { MOST_FIELDS = 32 };

struct field {
    PyObject *name, *usual; /* `usual`: the default value, NULL for none */
    PyObject *descriptor;
    descrsetfunc set;
};

/* The plan of a class: how to create its objects. It is never freed, as the class lives as long as the process. */
struct plan {
    PyObject *stated; /* the `__init__` of the dataclass */
    Py_ssize_t count;
    struct field fields[MOST_FIELDS];
};

static PyObject *plans; /* capsules by class */

/* Returns the plan of a class or of its nearest base class with one; NULL if there is none. */
static struct plan *plan_of(PyTypeObject *type)
{
    for (; type; type = PyType_GetSlot(type, Py_tp_base)) {
        PyObject *found = PyDict_GetItemWithError(plans, (PyObject *)type);
        if (found)
            return PyCapsule_GetPointer(found, NULL);
    }
    return NULL;
}

static Py_ssize_t place_of(const struct plan *plan, PyObject *name)
{
    Py_ssize_t at = 0;
    while (at < plan->count && plan->fields[at].name != name)
        at++;
    return at;
}

/* Sorts the arguments by field, borrowed; returns false if one is missing, unknown or given twice. */
static bool sort_values(const struct plan *plan, PyObject *const *args, Py_ssize_t count, PyObject *names,
                        PyObject *values[MOST_FIELDS])
{
    if (count > plan->count)
        return false;
    for (Py_ssize_t i = 0; i < plan->count; i++)
        values[i] = i < count ? args[i] : NULL;
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t i = 0; i < named; i++) {
        Py_ssize_t at = place_of(plan, PyTuple_GetItem(names, i));
        if (at == plan->count || values[at])
            return false;
        values[at] = args[count + i];
    }
    for (Py_ssize_t i = count; i < plan->count; i++) {
        if (!values[i])
            values[i] = plan->fields[i].usual;
        if (!values[i])
            return false;
    }
    return true;
}

static PyObject *init(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    PyObject *values[MOST_FIELDS];
    struct plan *plan = plan_of(Py_TYPE(self));
    if (!plan)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "no such class has a plan");
    if (!sort_values(plan, args, count, names, values))
        return call_method(plan->stated, self, args, count, names);
    for (Py_ssize_t i = 0; i < plan->count; i++)
        if (plan->fields[i].set(plan->fields[i].descriptor, self, values[i]) < 0)
            return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef method = FAST_METHOD("__init__", init);

static bool take_field(struct field *field, PyObject *kind, PyObject *item)
{
    PyObject *name;
    if (!PyTuple_Check(item)) {
        PyErr_SetString(PyExc_TypeError, "a field is a tuple");
        return false;
    }
    if (!PyArg_ParseTuple(item, "U|O", &name, &field->usual))
        return false;
    field->name = Py_NewRef(name);
    PyUnicode_InternInPlace(&field->name);
    Py_XINCREF(field->usual);
    field->descriptor = PyObject_GetAttr(kind, field->name);
    if (!field->descriptor)
        return false;
    field->set = (descrsetfunc)PyType_GetSlot(Py_TYPE(field->descriptor), Py_tp_descr_set);
    if (!field->set)
        PyErr_Format(PyExc_TypeError, "%U is in no slot", field->name);
    return field->set;
}

static bool take_plan(struct plan *plan, PyObject *kind, PyObject *fields, PyObject *stated)
{
    plan->count = PyTuple_Size(fields);
    plan->stated = Py_NewRef(stated);
    if (plan->count > MOST_FIELDS) {
        PyErr_Format(PyExc_ValueError, "%d fields at most", (int)MOST_FIELDS);
        return false;
    }
    for (Py_ssize_t i = 0; i < plan->count; i++)
        if (!take_field(&plan->fields[i], kind, PyTuple_GetItem(fields, i)))
            return false;
    return true;
}

static void plan_free(struct plan *plan)
{
    for (Py_ssize_t i = 0; i < plan->count && i < MOST_FIELDS; i++) {
        Py_XDECREF(plan->fields[i].name);
        Py_XDECREF(plan->fields[i].usual);
        Py_XDECREF(plan->fields[i].descriptor);
    }
    Py_XDECREF(plan->stated);
    PyMem_Free(plan);
}

PyObject *py_quick_init(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *kind, *fields, *stated;
    if (!PyArg_ParseTuple(args, "O!O!O", &PyType_Type, &kind, &PyTuple_Type, &fields, &stated))
        return NULL;
    if (!plans && !(plans = PyDict_New()))
        return NULL;
    struct plan *plan = PyMem_Calloc(1, sizeof *plan);
    if (!plan)
        return PyErr_NoMemory();
    PyObject *capsule = take_plan(plan, kind, fields, stated) ? PyCapsule_New(plan, NULL, NULL) : NULL;
    if (!capsule || PyDict_SetItem(plans, kind, capsule) < 0) {
        Py_XDECREF(capsule);
        plan_free(plan);
        return NULL;
    }
    Py_DECREF(capsule);
    return PyDescr_NewMethod((PyTypeObject *)kind, &method);
}
