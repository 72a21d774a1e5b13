/* The extension module seglog.storage.kernels._native; _native.pyi documents its contents. */

#include "fast_path.h"
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ADDRESS, PORT, HOST_FIELDS };

static PyObject *host_names[HOST_FIELDS];

PyTypeObject *type_add(PyObject *module, PyType_Spec *spec, const char *name)
{
    PyObject *type = PyType_FromSpec(spec);
    if (type && name && PyModule_AddObjectRef(module, name, type) < 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}

bool intern(PyObject **interned, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        interned[i] = PyUnicode_InternFromString(texts[i]);
        if (!interned[i])
            return false;
    }
    return true;
}

bool has_no_keywords(PyObject *keywords, const char *type_name)
{
    if (!keywords || PyDict_Size(keywords) == 0)
        return true;
    PyErr_Format(PyExc_TypeError, "%s takes no keywords", type_name);
    return false;
}

/* Calls with `self` before the positional arguments, unless it is NULL. */
static PyObject *call_any(PyObject *function, PyObject *self, PyObject *const *args, Py_ssize_t count,
                          PyObject *names)
{
    Py_ssize_t first = self ? 1 : 0;
    PyObject *positional = PyTuple_New(first + count), *named = PyDict_New(), *answer = NULL;
    bool is_ready = positional && named && (!self || PyTuple_SetItem(positional, 0, Py_NewRef(self)) == 0);
    for (Py_ssize_t i = 0; is_ready && i < count; i++)
        is_ready = PyTuple_SetItem(positional, first + i, Py_NewRef(args[i])) == 0;
    for (Py_ssize_t i = 0; is_ready && names && i < PyTuple_Size(names); i++)
        is_ready = PyDict_SetItem(named, PyTuple_GetItem(names, i), args[count + i]) == 0;
    if (is_ready)
        answer = PyObject_Call(function, positional, named);
    Py_XDECREF(positional);
    Py_XDECREF(named);
    return answer;
}

PyObject *call_with(PyObject *function, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    return call_any(function, NULL, args, count, names);
}

PyObject *call_method(PyObject *method, PyObject *self, PyObject *const *args, Py_ssize_t count,
                      PyObject *names)
{
    enum { MOST = 5 };
    if (names || count > MOST)
        return call_any(method, self, args, count, names);
    /* Without a tuple and a dict: every read of a store that is open for reading uses this path. */
    PyObject *each[MOST] = {NULL};
    for (Py_ssize_t i = 0; i < count; i++)
        each[i] = args[i];
    return PyObject_CallFunctionObjArgs(method, self, each[0], each[1], each[2], each[3], each[4], NULL);
}

PyObject *list_of(size_t count, PyObject *(*item)(const void *state, size_t i), const void *state)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *one = item(state, i);
        if (!one || PyList_SetItem(list, (Py_ssize_t)i, one) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *position_at(const void *positions, size_t i)
{
    return PyLong_FromSize_t(((const size_t *)positions)[i]);
}

PyObject *list_of_positions(const size_t *positions, size_t count)
{
    return list_of(count, position_at, positions);
}

void buffers_release(Py_buffer *buffers, size_t count)
{
    while (count-- > 0)
        PyBuffer_Release(&buffers[count]);
}

bool py_to_bytes(PyObject *value, struct span *bytes)
{
    char *at;
    Py_ssize_t size;
    if (!PyBytes_Check(value) || PyBytes_AsStringAndSize(value, &at, &size) < 0)
        return false;
    *bytes = span_of((const uint8_t *)at, (size_t)size);
    return true;
}

bool py_to_text(PyObject *value, struct span *text)
{
    Py_ssize_t size;
    const char *at = PyUnicode_CheckExact(value) ? PyUnicode_AsUTF8AndSize(value, &size) : NULL;
    if (!at)
        return false;
    *text = span_of((const uint8_t *)at, (size_t)size);
    return true;
}

bool py_to_i64(PyObject *value, int64_t *number)
{
    int overflow;
    if (!PyLong_CheckExact(value)) /* a bool is refused: the Python twin raises the error */
        return false;
    *number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow;
}

bool py_to_i32(PyObject *value, int32_t *number)
{
    int64_t wide;
    if (!py_to_i64(value, &wide) || wide < INT32_MIN || wide > INT32_MAX)
        return false;
    *number = (int32_t)wide;
    return true;
}

static bool take_address(PyObject *value, struct host *host)
{
    struct span address;
    if (!py_to_bytes(value, &address) || address.size > sizeof host->address)
        return false;
    host->address_size = address.size;
    memcpy(host->address, address.at, address.size);
    return true;
}

bool py_to_host(PyObject *value, struct host *host)
{
    PyObject *address = PyObject_GetAttr(value, host_names[ADDRESS]);
    PyObject *port = address ? PyObject_GetAttr(value, host_names[PORT]) : NULL;
    bool is_taken = port && take_address(address, host) && py_to_i32(port, &host->port);
    Py_XDECREF(address);
    Py_XDECREF(port);
    return is_taken;
}

bool py_to_phy_offset(PyObject *value, int64_t *phy_offset, bool *is_possible)
{
    int overflow;
    *phy_offset = PyLong_AsLongLongAndOverflow(value, &overflow);
    *is_possible = !overflow && *phy_offset >= 0;
    return !PyErr_Occurred();
}

#if defined(__linux__) && !defined(SYS_openat2)
#define SYS_openat2 437 /* the same number on every architecture of Linux 5.6 except alpha */
#endif

/* struct open_how and RESOLVE_* of linux/openat2.h, which older headers lack. */
struct how {
    uint64_t flags;
    uint64_t mode;
    uint64_t resolve;
};

enum { NO_MAGIC_LINKS = 0x02, NO_SYMLINKS = 0x04, BENEATH = 0x08 };

enum { MOST_TRIES = 8 }; /* for EAGAIN: a name was changed while the kernel resolved the path */

/* Opens a path below a folder; fails if any name on the path leads out of the folder. */
static int open_beneath(int folder, const char *path, uint64_t flags)
{
#ifdef SYS_openat2
    struct how how = {.flags = flags, .resolve = NO_MAGIC_LINKS | NO_SYMLINKS | BENEATH};
    long found = -1;
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        found = syscall(SYS_openat2, folder, path, &how, sizeof how);
        if (found >= 0 || (errno != EAGAIN && errno != EINTR))
            break;
    }
    return (int)found;
#else
    (void)folder, (void)path, (void)flags;
    errno = ENOSYS;
    return -1;
#endif
}

PyObject *py_open_beneath(PyObject *Py_UNUSED(module), PyObject *args)
{
    int folder, flags, found;
    const char *path;
    if (!PyArg_ParseTuple(args, "iyi", &folder, &path, &flags))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    found = open_beneath(folder, path, (uint64_t)(unsigned int)flags);
    Py_END_ALLOW_THREADS
    if (found < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    return PyLong_FromLong(found);
}

/* Opens a regular file; for writing, only a file with a single name. Returns -1 for everything else. The stat
 * before the open avoids opening a device. That stat may follow a link; the open does not, so the opened file
 * is checked again.
 */
static int open_plain(int folder, const char *path, int flags)
{
    bool is_written = (flags & O_ACCMODE) != O_RDONLY;
    struct stat found;
    if (fstatat(folder, path, &found, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(found.st_mode) ||
        (is_written && found.st_nlink > 1))
        return -1;
    int opened = open_beneath(folder, path, (uint64_t)(unsigned int)flags);
    if (opened < 0)
        return -1;
    if (fstat(opened, &found) == 0 && S_ISREG(found.st_mode) && !(is_written && found.st_nlink > 1))
        return opened;
    close(opened);
    return -1;
}

PyObject *py_open_plain(PyObject *Py_UNUSED(module), PyObject *args)
{
    int folder, flags, found;
    const char *path;
    if (!PyArg_ParseTuple(args, "iyi", &folder, &path, &flags))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    found = open_plain(folder, path, flags);
    Py_END_ALLOW_THREADS
    return PyLong_FromLong(found);
}

enum { LOOK_CLOSER = 1 };

/* Returns the mode of the file at a path; 0 if none exists, LOOK_CLOSER if the path leads out of the folder. */
static unsigned int mode_beneath(int folder, const char *path)
{
#ifdef O_PATH
    struct stat found;
    int opened = open_beneath(folder, path, (uint64_t)(O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (opened < 0)
        return errno == ENOENT ? 0 : LOOK_CLOSER;
    unsigned int mode = fstat(opened, &found) == 0 ? (unsigned int)found.st_mode : LOOK_CLOSER;
    close(opened);
    return mode;
#else
    (void)folder, (void)path;
    return LOOK_CLOSER;
#endif
}

PyObject *py_mode_beneath(PyObject *Py_UNUSED(module), PyObject *args)
{
    int folder;
    const char *path;
    unsigned int mode;
    if (!PyArg_ParseTuple(args, "iy", &folder, &path))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    mode = mode_beneath(folder, path);
    Py_END_ALLOW_THREADS
    return PyLong_FromUnsignedLong(mode);
}

#define METHOD(name) {#name, py_##name, METH_VARARGS, NULL},
#define TYPE(name) name##_add,

static PyMethodDef methods[] = {
    MODULE_FUNCTIONS(METHOD){NULL, NULL, 0, NULL},
};

/* Types and caches are static, so a second interpreter in the process must use the Python kernels. */
static int prepare(PyObject *module)
{
    static bool is_taken;
    if (is_taken) {
        PyErr_SetString(PyExc_ImportError, "the native kernels serve one interpreter of a process, once");
        return -1;
    }
    is_taken = true;
    static const char *const host_texts[HOST_FIELDS] = {"address", "port"};
    static int (*const add_types[])(PyObject *) = {MODULE_TYPES(TYPE)};
    crc32_prepare();
    if (!queues_seed() || !intern(host_names, host_texts, HOST_FIELDS))
        return -1;
    for (size_t i = 0; i < sizeof add_types / sizeof add_types[0]; i++)
        if (add_types[i](module) < 0)
            return -1;
    if (PyModule_AddStringConstant(module, "INTERFACE", SEGLOG_INTERFACE) < 0)
        return -1;
    return PyModule_AddStringConstant(module, "CRC32_WAY", crc32_multiplies() ? "multiply" : "table");
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)prepare},
    {0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "seglog.storage.kernels._native",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&definition);
}
