/* Fields of headers, as seglog.remoting.headers does in Python, for usual headers; None for all others. */

#include "python_api.h"

/* Kinds of fields, in the low bits of a field's plan. If a field with REQUIRED is missing, Python raises the
 * error. */
enum kind { KIND_TEXT, KIND_I32, KIND_I64, KIND_BOOL, KIND_BYTES, KIND_REQUIRED = 8 };

enum { MOST_DIGITS_I64 = 18 };

static PyObject *number_of_text(PyObject *text, enum kind kind)
{
    struct span digits;
    if (!py_to_text(text, &digits))
        return NULL;
    bool is_negative = digits.size > 0 && digits.at[0] == '-';
    if (is_negative || (digits.size > 0 && digits.at[0] == '+'))
        digits = span_after(digits, 1);
    if (digits.size == 0 || digits.size > MOST_DIGITS_I64)
        return NULL;
    int64_t number = 0;
    for (size_t i = 0; i < digits.size; i++) {
        if (digits.at[i] < '0' || digits.at[i] > '9')
            return NULL;
        number = 10 * number + (digits.at[i] - '0');
    }
    if (is_negative)
        number = -number;
    bool fits = kind == KIND_I64 || (number >= INT32_MIN && number <= INT32_MAX);
    return fits ? PyLong_FromLongLong(number) : NULL;
}

static PyObject *bool_of_text(PyObject *text)
{
    struct span word;
    if (!py_to_text(text, &word))
        return NULL;
    if (spans_are_equal(word, TEXT("true")))
        return Py_NewRef(Py_True);
    return spans_are_equal(word, TEXT("false")) ? Py_NewRef(Py_False) : NULL;
}

static PyObject *value_of_text(PyObject *text, enum kind kind)
{
    switch (kind) {
    case KIND_TEXT:
        return PyUnicode_CheckExact(text) ? Py_NewRef(text) : NULL;
    case KIND_I32:
    case KIND_I64:
        return number_of_text(text, kind);
    case KIND_BOOL:
        return bool_of_text(text);
    case KIND_BYTES:
        return PyUnicode_CheckExact(text) ? PyUnicode_AsUTF8String(text) : NULL;
    default:
        return NULL;
    }
}

/* The plan of a field. */
struct planned {
    PyObject *attribute, *name, *usual;
    int kind;
};

static bool take_planned(PyObject *plan, Py_ssize_t at, struct planned *field)
{
    PyObject *item = PyTuple_GetItem(plan, at);
    return item && PyArg_ParseTuple(item, "OOiO", &field->attribute, &field->name, &field->kind, &field->usual);
}

/* Returns the value of one field. */
static PyObject *value_of_field(PyObject *fields, const struct planned *field)
{
    PyObject *text = PyDict_GetItemWithError(fields, field->name);
    if (text)
        return value_of_text(text, (enum kind)(field->kind & ~KIND_REQUIRED));
    return field->kind & KIND_REQUIRED || PyErr_Occurred() ? NULL : Py_NewRef(field->usual);
}

/* Sets the attributes of a new object; a frozen class refuses that only after its creation. */
static bool fill_header(PyObject *header, PyObject *fields, PyObject *plan)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(plan); i++) {
        struct planned field;
        PyObject *value = take_planned(plan, i, &field) ? value_of_field(fields, &field) : NULL;
        bool is_set = value && PyObject_GenericSetAttr(header, field.attribute, value) == 0;
        Py_XDECREF(value);
        if (!is_set)
            return false;
    }
    return true;
}

PyObject *py_read_fields(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *type, *fields, *plan;
    if (!PyArg_ParseTuple(args, "O!OO!", &PyType_Type, &type, &fields, &PyTuple_Type, &plan))
        return NULL;
    PyObject *header = PyDict_CheckExact(fields) ? object_new((PyTypeObject *)type) : NULL;
    if (header && fill_header(header, fields, plan))
        return header;
    Py_XDECREF(header);
    PyErr_Clear();
    Py_RETURN_NONE;
}

/* Returns the text of a value; NULL if it is not of the kind. */
static PyObject *text_of_value(PyObject *value, enum kind kind)
{
    switch (kind) {
    case KIND_TEXT:
        return PyUnicode_CheckExact(value) ? Py_NewRef(value) : NULL;
    case KIND_I32:
    case KIND_I64:
        return PyLong_CheckExact(value) ? PyObject_Str(value) : NULL;
    case KIND_BOOL:
        return value == Py_True || value == Py_False
                   ? PyUnicode_FromString(value == Py_True ? "true" : "false")
                   : NULL;
    case KIND_BYTES:
        return PyBytes_CheckExact(value) ? PyUnicode_FromEncodedObject(value, "utf-8", "strict") : NULL;
    default:
        return NULL;
    }
}

/* Writes the attributes of a header into fields, except those that are None. */
static bool put_texts(PyObject *fields, PyObject *header, PyObject *plan)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(plan); i++) {
        struct planned field;
        PyObject *value =
            take_planned(plan, i, &field) ? PyObject_GenericGetAttr(header, field.attribute) : NULL;
        PyObject *text = NULL;
        bool is_put = value == Py_None;
        if (value && !is_put) {
            text = text_of_value(value, (enum kind)(field.kind & ~KIND_REQUIRED));
            is_put = text && PyDict_SetItem(fields, field.name, text) == 0;
        }
        Py_XDECREF(text);
        Py_XDECREF(value);
        if (!is_put)
            return false;
    }
    return true;
}

PyObject *py_write_fields(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *header, *plan;
    if (!PyArg_ParseTuple(args, "OO!", &header, &PyTuple_Type, &plan))
        return NULL;
    PyObject *fields = PyDict_New();
    if (fields && put_texts(fields, header, plan))
        return fields;
    Py_XDECREF(fields);
    PyErr_Clear();
    Py_RETURN_NONE;
}
