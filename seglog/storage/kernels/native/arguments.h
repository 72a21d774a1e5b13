/* The arguments of calls that append, by name. */
#ifndef SEGLOG_ARGUMENTS_H
#define SEGLOG_ARGUMENTS_H

#include "python_api.h"

#include <stdbool.h>

enum argument {
    TOPIC,
    QUEUE_ID,
    BODY,
    MESSAGES,
    PROPERTIES,
    TAGS_CODE,
    TAGS,
    KEYS,
    FLAG,
    DURABILITY,
    SYS_FLAG,
    BORN_TIMESTAMP_MS,
    BORN_HOST,
    STORE_HOST,
    RECONSUME_TIMES,
    PREPARED_TRANSACTION_OFFSET,
    ARGUMENTS
};

enum { MOST_POSITIONAL = 5 };

/* The calls of one method that the lane looks at: these by place, those of `named` by name or not at all. */
struct signature {
    size_t positional_count;
    enum argument positional[MOST_POSITIONAL];
    unsigned named; /* bits of arguments */
};

#define NAMED(argument) (1u << (argument))

/* Interns the names; to be called before anything else. */
bool arguments_prepare(void);

/* Sorts the arguments of a vector call, borrowed; those left out are NULL. False for a call of another form. */
bool arguments_sort(const struct signature *signature, PyObject *const *args, Py_ssize_t count,
                    PyObject *names, PyObject *sorted[ARGUMENTS]);

/* Calls a Python function with the arguments of a vector call. */
PyObject *arguments_pass(PyObject *function, PyObject *const *args, Py_ssize_t count, PyObject *names);

#endif
