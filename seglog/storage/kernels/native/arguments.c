#include "arguments.h"

#include <string.h>

static const char *const texts[ARGUMENTS] = {
    [TOPIC] = "topic",
    [QUEUE_ID] = "queue_id",
    [BODY] = "body",
    [MESSAGES] = "messages",
    [PROPERTIES] = "properties",
    [TAGS_CODE] = "tags_code",
    [TAGS] = "tags",
    [KEYS] = "keys",
    [FLAG] = "flag",
    [DURABILITY] = "durability",
    [SYS_FLAG] = "sys_flag",
    [BORN_TIMESTAMP_MS] = "born_timestamp_ms",
    [BORN_HOST] = "born_host",
    [STORE_HOST] = "store_host",
    [RECONSUME_TIMES] = "reconsume_times",
    [PREPARED_TRANSACTION_OFFSET] = "prepared_transaction_offset",
};

static PyObject *interned[ARGUMENTS];

bool arguments_prepare(void)
{
    for (int i = 0; i < ARGUMENTS; i++) {
        interned[i] = PyUnicode_InternFromString(texts[i]);
        if (!interned[i])
            return false;
    }
    return true;
}

/* Names in calls are interned by the compiler; of others the twin knows more. */
static int number_of(PyObject *name)
{
    for (int i = 0; i < ARGUMENTS; i++)
        if (interned[i] == name)
            return i;
    return -1;
}

bool arguments_sort(const struct signature *signature, PyObject *const *args, Py_ssize_t count,
                    PyObject *names, PyObject *sorted[ARGUMENTS])
{
    memset(sorted, 0, ARGUMENTS * sizeof *sorted);
    if ((size_t)count != signature->positional_count)
        return false;
    for (Py_ssize_t i = 0; i < count; i++)
        sorted[signature->positional[i]] = args[i];
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t i = 0; i < named; i++) {
        int number = number_of(PyTuple_GetItem(names, i));
        if (number < 0 || !(signature->named & NAMED(number)))
            return false;
        sorted[number] = args[count + i];
    }
    return true;
}

static PyObject *as_tuple(PyObject *const *args, Py_ssize_t count)
{
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple && i < count; i++)
        PyTuple_SetItem(tuple, i, Py_NewRef(args[i]));
    return tuple;
}

static PyObject *as_dict(PyObject *const *args, PyObject *names)
{
    PyObject *dict = PyDict_New();
    Py_ssize_t count = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t i = 0; dict && i < count; i++)
        if (PyDict_SetItem(dict, PyTuple_GetItem(names, i), args[i]) < 0)
            Py_CLEAR(dict);
    return dict;
}

PyObject *arguments_pass(PyObject *function, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    PyObject *positional = as_tuple(args, count);
    PyObject *named = positional ? as_dict(args + count, names) : NULL;
    PyObject *answer = named ? PyObject_Call(function, positional, named) : NULL;
    Py_XDECREF(positional);
    Py_XDECREF(named);
    return answer;
}
