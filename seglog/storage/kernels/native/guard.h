/* Reads of memory that another process may take away: of a map whose file is cut, or cannot be read.
 *
 * The system answers such a read with SIGBUS, which ends the process. While a guard is up, a read within
 * the guarded memory ends only the work that it is part of. All other faults go to whoever handled them
 * before.
 */
#ifndef SEGLOG_GUARD_H
#define SEGLOG_GUARD_H

#include <stdbool.h>

#include "bytes.h"

/* Puts up the guard of the process, and takes it down; calls nest, and both are made with the GIL held.
 * The handler that was there before is there again once the last one is down.
 */
void guard_up(void);
void guard_down(void);

/* Does the work, on this thread and between guard_up and guard_down. False if a byte of the memory could
 * not be read: `lost_at` then says which, and the work ended in the middle of that read. So it holds no
 * lock while it reads, and what it owns can be found through `state`.
 */
bool guarded(struct span memory, void (*work)(void *state), void *state, size_t *lost_at);

/* What was written before is in memory: to be said before a guarded read that may not return. */
static inline void settle_memory(void)
{
    __asm__ volatile("" ::: "memory");
}

#endif
