#define _GNU_SOURCE

#include "populate.h"

#include <sys/mman.h>
#include <unistd.h>

#if defined(__linux__) && !defined(MADV_POPULATE_WRITE)
#define MADV_POPULATE_WRITE 23
#endif

enum { AT_A_TIME_BYTES = 1 << 20 }; /* between them whoever maps or unmaps a file gets his turn */

#ifdef MADV_POPULATE_WRITE
bool populate(struct span pages)
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
bool populate(struct span pages)
{
    (void)pages;
    return false;
}
#endif
