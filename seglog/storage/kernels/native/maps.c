/* Memory of mapped files: tables of maps, reads of files that another process may cut, populating of pages. */

#include "reads.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

/* A table holds files within this distance; other files are left to Python. */
enum { MAX_FILES = 1 << 16, GOOD = 1 };

static PyTypeObject *maps_type;

struct file_map *maps_find(const Maps *maps, int64_t offset)
{
    int64_t at = offset / maps->file_bytes - maps->first_number;
    if (offset < 0 || at < 0 || (uint64_t)at >= maps->count)
        return NULL;
    struct file_map *file = &maps->files[at];
    return file->memory && !file->is_refused ? file : NULL;
}

static bool blocks_are_good(const Maps *maps, const struct file_map *file, int64_t start, int64_t end)
{
    const uint8_t *states = file->states.buf;
    int64_t first = start - start % maps->file_bytes;
    for (int64_t block = (start - first) / SEGLOG_SEAL_BLOCK_BYTES;
         first + block * SEGLOG_SEAL_BLOCK_BYTES < end; block++)
        if (block >= file->states.len || states[block] != GOOD)
            return false;
    return true;
}

bool maps_are_sound(const Maps *maps, const struct file_map *file, int64_t start, int64_t end)
{
    if (start >= maps->guarded_end)
        return true;
    return file->states.obj &&
           blocks_are_good(maps, file, start, end < maps->guarded_end ? end : maps->guarded_end);
}

int file_is_whole(const Maps *maps, struct file_map *file, int64_t now_ms)
{
    file->checked_ms = now_ms;
    if (!file->length_now)
        return 1;
    PyObject *length_now = Py_NewRef(file->length_now);
    int64_t file_bytes = maps->file_bytes;
    PyObject *length = PyObject_CallNoArgs(length_now);
    Py_DECREF(length_now);
    if (!length)
        return -1;
    long long found = PyLong_AsLongLong(length);
    Py_DECREF(length);
    if (found == -1 && PyErr_Occurred())
        return -1;
    return found >= file_bytes;
}

/* Clears the entry of a file before it releases the objects: the release may run Python code, which must not find
 * a half-cleared entry. */
static void unmap(struct file_map *file)
{
    struct file_map old = *file;
    file->memory = NULL;
    if (!old.memory)
        return;
    Py_XDECREF(old.length_now);
    Py_DECREF(old.memory);
}

static PyObject *maps_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    long long file_bytes;
    if (!has_no_keywords(keywords, "Maps") || !PyArg_ParseTuple(args, "L", &file_bytes))
        return NULL;
    if (file_bytes < 1) {
        PyErr_SetString(PyExc_ValueError, "a file has a length");
        return NULL;
    }
    Maps *maps = object_new(type);
    if (maps)
        maps->file_bytes = file_bytes;
    return (PyObject *)maps;
}

static void maps_dealloc(PyObject *self)
{
    Maps *maps = (Maps *)self;
    for (size_t i = 0; i < maps->count; i++) {
        unmap(&maps->files[i]);
        if (maps->files[i].states.obj)
            PyBuffer_Release(&maps->files[i].states);
    }
    PyMem_Free(maps->files);
    object_free(self);
}

/* Extends the table to the files `first` to `last`. */
static bool extend(Maps *maps, int64_t first, int64_t last)
{
    size_t count = (size_t)(last - first + 1);
    struct file_map *files = PyMem_Calloc(count, sizeof *files);
    if (!files) {
        PyErr_NoMemory();
        return false;
    }
    if (maps->count)
        memcpy(files + (maps->first_number - first), maps->files, maps->count * sizeof *files);
    PyMem_Free(maps->files);
    maps->files = files;
    maps->count = count;
    maps->first_number = first;
    return true;
}

/* Returns the entry for the file that begins at `offset`; NULL with an exception, or without one for a file too
 * far from the others.
 */
static struct file_map *place(Maps *maps, int64_t offset)
{
    if (offset < 0) {
        PyErr_SetString(PyExc_ValueError, "no file begins there");
        return NULL;
    }
    int64_t number = offset / maps->file_bytes;
    int64_t end = maps->first_number + (int64_t)maps->count;
    int64_t first = maps->count && maps->first_number < number ? maps->first_number : number;
    int64_t last = maps->count && end - 1 > number ? end - 1 : number;
    if (last - first >= MAX_FILES)
        return NULL;
    bool is_inside = maps->count && number >= maps->first_number && number < end;
    if (!is_inside && !extend(maps, first, last))
        return NULL;
    return &maps->files[number - maps->first_number];
}

/* Returns the entry for the offset of an argument if it exists already. */
static struct file_map *known_place(const Maps *maps, PyObject *offset)
{
    long long first = PyLong_AsLongLong(offset);
    if (first == -1 && PyErr_Occurred())
        return NULL;
    int64_t at = first / maps->file_bytes - maps->first_number;
    return first >= 0 && at >= 0 && (uint64_t)at < maps->count ? &maps->files[at] : NULL;
}

static PyObject *none_unless_error(void)
{
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *maps_set(PyObject *self, PyObject *args)
{
    Maps *maps = (Maps *)self;
    PyObject *view, *length_now;
    long long offset;
    if (!PyArg_ParseTuple(args, "LOO", &offset, &view, &length_now))
        return NULL;
    struct file_map *file = place(maps, offset);
    if (!file)
        return none_unless_error();
    unmap(file);
    PyObject *memory = memory_new(view);
    if (!memory)
        return NULL;
    file = place(maps, offset);
    if (!file || file->memory || memory_bytes(memory).size < (uint64_t)maps->file_bytes) {
        Py_DECREF(memory);
        return none_unless_error();
    }
    file->memory = memory;
    file->length_now = length_now == Py_None ? NULL : Py_NewRef(length_now);
    file->bytes = memory_bytes(memory).at;
    file->checked_ms = INT64_MIN;
    Py_RETURN_NONE;
}

static PyObject *maps_drop(PyObject *self, PyObject *offset)
{
    struct file_map *file = known_place((Maps *)self, offset);
    if (file)
        unmap(file);
    return none_unless_error();
}

static PyObject *maps_refuse(PyObject *self, PyObject *offset)
{
    long long first = PyLong_AsLongLong(offset);
    struct file_map *file = first == -1 && PyErr_Occurred() ? NULL : place((Maps *)self, first);
    if (file)
        file->is_refused = true;
    return none_unless_error();
}

static PyObject *maps_know(PyObject *self, PyObject *args)
{
    PyObject *offset, *states;
    if (!PyArg_ParseTuple(args, "OO", &offset, &states))
        return NULL;
    struct file_map *file = known_place((Maps *)self, offset);
    if (file && !file->states.obj && PyObject_GetBuffer(states, &file->states, PyBUF_SIMPLE) < 0)
        return NULL;
    return none_unless_error();
}

static PyMemberDef members[] = {
    {"guarded_end", T_LONGLONG, offsetof(Maps, guarded_end), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef methods[] = {
    {"set", maps_set, METH_VARARGS, NULL},
    {"drop", maps_drop, METH_O, NULL},
    {"refuse", maps_refuse, METH_O, NULL},
    {"know", maps_know, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)maps_new},
    {Py_tp_dealloc, (void *)maps_dealloc},
    {Py_tp_members, members},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "seglog.storage.kernels._native.Maps",
    .basicsize = sizeof(Maps),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

Maps *as_maps(PyObject *value)
{
    if (Py_IS_TYPE(value, maps_type))
        return (Maps *)value;
    PyErr_SetString(PyExc_TypeError, "Maps expected");
    return NULL;
}

int maps_add(PyObject *module)
{
    maps_type = type_add(module, &spec, "Maps");
    return maps_type ? 0 : -1;
}

/* Reads of a map whose file another process may cut, or whose disk cannot be read.
 *
 * Such a read raises SIGBUS, which ends the process. While a guard is up, a fault within the guarded memory
 * ends only the work that the read is part of. All other faults are passed to the earlier handler. Signal
 * handlers belong to the whole process, so ours is installed only during guarded reads.
 */

struct guard {
    sigjmp_buf back;
    struct span memory;
    volatile size_t lost_at;
};

static _Thread_local struct guard *volatile own;
static _Thread_local volatile sig_atomic_t is_passing;
static struct sigaction before;
static unsigned up;

static void die_of(int number)
{
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigaction(number, &usual, NULL);
}

/* Passes on a fault outside of guarded memory. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    bool was_sent = info->si_code <= 0;
    if (is_passing) { /* the earlier handler has passed the fault back to ours: end the loop */
        die_of(number);
    } else if (before.sa_flags & SA_SIGINFO) {
        is_passing = 1;
        before.sa_sigaction(number, info, context);
        is_passing = 0;
    } else if (before.sa_handler == SIG_IGN && was_sent) {
        return;
    } else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
        die_of(number); /* with the default handler the same read faults again and ends the process */
        if (was_sent)
            raise(number);
    } else {
        is_passing = 1;
        before.sa_handler(number);
        is_passing = 0;
    }
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    struct guard *guard = own;
    if (guard && info->si_code > 0) {
        uintptr_t start = (uintptr_t)guard->memory.at, at = (uintptr_t)info->si_addr;
        if (at >= start && at - start < guard->memory.size) {
            guard->lost_at = at - start;
            siglongjmp(guard->back, 1);
        }
    }
    pass_on(number, info, context);
}

static bool is_ours(const struct sigaction *action)
{
    return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_fault;
}

/* Puts up the guard of the process, and takes it down. Calls nest; both need the GIL. The last guard_down
 * restores the earlier handler.
 */
static void guard_up(void)
{
    if (up++)
        return;
    /* SA_NODEFER: a jump out of the handler then leaves no signal blocked, so no mask must be saved. */
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    struct sigaction there;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGBUS, &action, &there) == 0 && !is_ours(&there))
        before = there;
}

static void guard_down(void)
{
    struct sigaction there;
    if (--up || sigaction(SIGBUS, NULL, &there) != 0)
        return;
    if (is_ours(&there)) /* otherwise another handler was installed later, which may pass faults on to ours */
        sigaction(SIGBUS, &before, NULL);
}

/* Does the work on this thread, between guard_up and guard_down. Returns false if a byte of the memory could not
 * be read; `lost_at` is its position.
 */
static bool guarded(struct span memory, void (*work)(void *state), void *state, size_t *lost_at)
{
    struct guard guard = {.memory = memory, .lost_at = 0};
    struct guard *outer = own;
    bool is_whole = sigsetjmp(guard.back, 0) == 0;
    if (is_whole) {
        own = &guard;
        work(state);
    }
    own = outer;
    if (!is_whole)
        *lost_at = guard.lost_at;
    return is_whole;
}

/* Raises TruncatedError("cut-by-others", position_bytes=lost_at). */
static void raise_lost(size_t lost_at)
{
    PyObject *errors = PyImport_ImportModule("seglog.errors");
    PyObject *type = errors ? PyObject_GetAttrString(errors, "TruncatedError") : NULL;
    PyObject *args = Py_BuildValue("(s)", "cut-by-others");
    PyObject *named = Py_BuildValue("{s:n}", "position_bytes", (Py_ssize_t)lost_at);
    PyObject *error = type && args && named ? PyObject_Call(type, args, named) : NULL;
    if (error)
        PyErr_SetObject(type, error);
    Py_XDECREF(error);
    Py_XDECREF(named);
    Py_XDECREF(args);
    Py_XDECREF(type);
    Py_XDECREF(errors);
}

bool call_guarded(const Py_buffer *view, void (*work)(void *state), void *state)
{
    size_t lost_at = 0;
    bool is_whole;
    guard_up();
    Py_BEGIN_ALLOW_THREADS
    is_whole = guarded(span_in(view), work, state, &lost_at);
    Py_END_ALLOW_THREADS
    guard_down();
    if (!is_whole)
        raise_lost(lost_at);
    return is_whole;
}

#if defined(__linux__) && !defined(MADV_POPULATE_WRITE)
#define MADV_POPULATE_WRITE 23
#endif

enum { AT_A_TIME_BYTES = 1 << 20 }; /* other threads can map and unmap files between two calls of madvise */

/* Populates the whole pages within the span; their content stays, with all concurrent writes. Returns false if
 * the system cannot do it (Linux before 5.14), or if the file system has no space for a page; raises no
 * signal.
 */
#ifdef MADV_POPULATE_WRITE
static bool populate(struct span pages)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t at = ((uintptr_t)pages.at + page - 1) & ~(page - 1);
    uintptr_t end = ((uintptr_t)pages.at + pages.size) & ~(page - 1);
    while (at < end) {
        size_t size = end - at < AT_A_TIME_BYTES ? end - at : AT_A_TIME_BYTES;
        if (madvise((void *)at, size, MADV_POPULATE_WRITE) != 0)
            return false;
        at += size;
    }
    return true;
}
#else
static bool populate(struct span pages)
{
    (void)pages;
    return false;
}
#endif

PyObject *py_populate(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view;
    if (!PyArg_ParseTuple(args, "w*", &view))
        return NULL;
    bool is_ready;
    Py_BEGIN_ALLOW_THREADS
    is_ready = populate(span_in(&view));
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&view);
    return PyBool_FromLong(is_ready);
}
