/* Python's API, as far as it is stable from 3.11 on (one build serves all later versions), what all files
 * make of it, and what the module holds; what that does is said in _native.pyi.
 */
#ifndef SEGLOG_PYTHON_API_H
#define SEGLOG_PYTHON_API_H

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stddef.h>
#include <structmember.h>

#include "bytes.h"

/* The functions of the module, py_... here. */
#define MODULE_FUNCTIONS(each)                                                                               \
    each(block_sums) each(copy_strings) each(crc32) each(crc32_by_table) each(entries_extent)                \
    each(entries_stand_for) each(find_record) each(follow_entries) each(group_rows) each(have_key)           \
    each(index_keys) each(key_digest) each(key_digests) each(key_rows) each(last_of_keys)                    \
    each(message_columns) each(mode_beneath) each(move_records) each(open_beneath) each(open_plain)          \
    each(parts_of) each(populate) each(put_keys) each(quick_init) each(read_fields) each(read_header)        \
    each(record_facts) each(rows_stand_in) each(spilled_units) each(store_calls) each(units_by_queue)        \
    each(walk) each(walk_into) each(walk_stretch) each(write_fields) each(write_header)

/* Its types, ..._add here: each adds one, or several, and returns -1 with an exception. */
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

/* What an optional parameter may be besides a value. */
static inline bool is_given(PyObject *value)
{
    return value && value != Py_None;
}

/* A new object whose fields are all zero; NULL with an exception. */
static inline void *object_new(PyTypeObject *type)
{
    return ((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
}

/* The end of tp_dealloc. */
static inline void object_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* Makes a type that the caller keeps and, if it has a name, the module holds; NULL with an exception. */
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

/* A list of what `item` returns; NULL with an exception where it does so. */
PyObject *list_of(size_t count, PyObject *(*item)(const void *state, size_t i), const void *state);
PyObject *list_of_positions(const size_t *positions, size_t count);

void buffers_release(Py_buffer *buffers, size_t count);

static inline struct span span_in(const Py_buffer *view)
{
    return span_of(view->buf, (size_t)view->len);
}

/* Does the work over a buffer that may be the map of a file, without the GIL. False with TruncatedError if a
 * byte of the buffer could not be read: the work ended in the middle of that read. So it holds no lock while
 * it reads, and what it owns can be found through `state`.
 */
bool call_guarded(const Py_buffer *view, void (*work)(void *state), void *state);

/* An IP address and a port. */
struct host {
    uint8_t address[SEGLOG_IPV6_BYTES];
    size_t address_size; /* 4 or 16 */
    int32_t port;
};

/* Values of Python objects of the exact types that C reads; false for all others, which the Python twin must
 * handle.
 *
 * None of these runs Python code, and false may leave an exception set. Bytes and text belong to the object.
 */
bool py_to_bytes(PyObject *value, struct span *bytes);
bool py_to_text(PyObject *value, struct span *utf8);
bool py_to_i64(PyObject *value, int64_t *number);
bool py_to_i32(PyObject *value, int32_t *number);
bool py_to_host(PyObject *value, struct host *host);

/* Takes a physical offset. False with an exception; *is_possible says whether a record may have it. */
bool py_to_phy_offset(PyObject *value, int64_t *phy_offset, bool *is_possible);

#endif
