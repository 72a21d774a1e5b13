#define _GNU_SOURCE

#include "beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__linux__) && !defined(SYS_openat2)
#define SYS_openat2 437 /* the same on every architecture that Linux 5.6 knows, but for alpha */
#endif

/* struct open_how and RESOLVE_* of linux/openat2.h, which older headers lack. */
struct how {
    uint64_t flags;
    uint64_t mode;
    uint64_t resolve;
};

enum { NO_MAGIC_LINKS = 0x02, NO_SYMLINKS = 0x04, BENEATH = 0x08 };

enum { MOST_TRIES = 8 }; /* EAGAIN: something was renamed while the kernel looked */

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

/* Opens a regular file of one name, or of any number of names to read it; -1 for whatever is not that plain.
 * The look before keeps devices from being opened. It may go through a link, and then says nothing of what is
 * opened: that goes through none, and is looked at again. */
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

/* What is called so: its mode; 0 where there is nothing, LOOK_CLOSER where the way leads elsewhere. */
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
