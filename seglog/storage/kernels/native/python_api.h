/* Python's stable API from 3.11 on (one build works with all later versions), helpers for all files, and the
 * contents of the module, which _native.pyi documents.
 */
#ifndef SEGLOG_PYTHON_API_H
#define SEGLOG_PYTHON_API_H

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stddef.h>
#include <structmember.h>

#include "bytes.h"

/* The functions of the module; their C names begin with py_. */
#define MODULE_FUNCTIONS(each)                                                                               \
    each(block_sums) each(copy_strings) each(crc32) each(crc32_by_table) each(entries_extent)                \
    each(entries_stand_for) each(find_record) each(follow_entries) each(group_rows) each(have_key)           \
    each(index_keys) each(key_digest) each(key_digests) each(key_rows) each(last_of_keys)                    \
    each(message_columns) each(mode_beneath) each(move_records) each(open_beneath) each(open_plain)          \
    each(parts_of) each(populate) each(put_keys) each(quick_init) each(read_fields) each(read_header)        \
    each(record_facts) each(rows_stand_in) each(spilled_units) each(store_calls) each(units_by_queue)        \
    each(walk) each(walk_into) each(walk_stretch) each(write_fields) each(write_header)

/* Its types: each function ..._add adds one or several types, and returns -1 with an exception. */
#define MODULE_TYPES(each)                                                                                   \
    each(pending_record) each(tails) each(fast_path) each(log_bytes) each(read_result) each(maps)            \
        each(tag_set) each(reads) each(stored_message) each(decoder) each(usual_sends)

#define DECLARE_FUNCTION(name) PyObject *py_##name(PyObject *module, PyObject *args);
#define DECLARE_TYPE(name) int name##_add(PyObject *module);
MODULE_FUNCTIONS(DECLARE_FUNCTION)
MODULE_TYPES(DECLARE_TYPE)

/* Seeds the hashes of walks; false with an exception. */
bool queues_seed(void);

/* A method that takes a vector call. */
#define FAST_METHOD(name, function)                                                                          \
    {name, (PyCFunction)(void (*)(void))(function), METH_FASTCALL | METH_KEYWORDS, NULL}

/* Whether an optional parameter has a value: not NULL and not None. */
static inline bool is_given(PyObject *value)
{
    return value && value != Py_None;
}

/* Returns a new object with all fields zero; NULL with an exception. */
static inline void *object_new(PyTypeObject *type)
{
    return ((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
}

/* Frees an object; the last step of tp_dealloc. */
static inline void object_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* Creates a type that the caller keeps, and adds it to the module if `name` is given; NULL with an exception. */
PyTypeObject *type_add(PyObject *module, PyType_Spec *spec, const char *name);

/* Interns texts, to be compared with the names of arguments or to look up attributes. */
bool intern(PyObject **interned, const char *const *texts, size_t count);

/* Whether a constructor was called without keywords; TypeError otherwise. */
bool has_no_keywords(PyObject *keywords, const char *type_name);

/* Calls a Python function with the arguments of a vector call. */
PyObject *call_with(PyObject *function, PyObject *const *args, Py_ssize_t count, PyObject *names);

/* Calls a method of a Python class with the arguments of a vector call. */
PyObject *call_method(PyObject *method, PyObject *self, PyObject *const *args, Py_ssize_t count,
                      PyObject *names);

/* Returns a list of the results of `item`; NULL with an exception if one of them is NULL. */
PyObject *list_of(size_t count, PyObject *(*item)(const void *state, size_t i), const void *state);
PyObject *list_of_positions(const size_t *positions, size_t count);

void buffers_release(Py_buffer *buffers, size_t count);

static inline struct span span_in(const Py_buffer *view)
{
    return span_of(view->buf, (size_t)view->len);
}

/* Does the work without the GIL, over a buffer that may be the map of a file. Returns false with TruncatedError
 * if a byte of the buffer could not be read: the work was ended in the middle of that read. So the work must
 * not hold a lock while it reads, and must keep all memory that it owns in `state`.
 */
bool call_guarded(const Py_buffer *view, void (*work)(void *state), void *state);

/* An IP address and a port. */
struct host {
    uint8_t address[SEGLOG_IPV6_BYTES];
    size_t address_size; /* 4 or 16 */
    int32_t port;
};

/* Read values of Python objects of exact types; return false for all other types, which the Python twin must
 * handle.
 *
 * None of these runs Python code. With false, an exception may be set. Bytes and text belong to the object.
 */
bool py_to_bytes(PyObject *value, struct span *bytes);
bool py_to_text(PyObject *value, struct span *utf8);
bool py_to_i64(PyObject *value, int64_t *number);
bool py_to_i32(PyObject *value, int32_t *number);
bool py_to_host(PyObject *value, struct host *host);

/* Reads a physical offset, and sets *is_possible to whether a record may have it. Returns false with an
 * exception. */
bool py_to_phy_offset(PyObject *value, int64_t *phy_offset, bool *is_possible);

#endif
