/* Signals belong to the process, so the handler is there only while somebody reads. */

#define _XOPEN_SOURCE 700

#include "guard.h"

#include <setjmp.h>
#include <signal.h>

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

/* A fault that is none of ours. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    bool was_sent = info->si_code <= 0;
    if (is_passing) { /* who was before us passes it back to us */
        die_of(number);
    } else if (before.sa_flags & SA_SIGINFO) {
        is_passing = 1;
        before.sa_sigaction(number, info, context);
        is_passing = 0;
    } else if (before.sa_handler == SIG_IGN && was_sent) {
        return;
    } else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
        die_of(number); /* at the same read, once more */
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

void guard_up(void)
{
    if (up++)
        return;
    /* Not deferred: then a jump out of the handler leaves nothing blocked, and no mask need be kept. */
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    struct sigaction there;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGBUS, &action, &there) == 0 && !is_ours(&there))
        before = there;
}

void guard_down(void)
{
    struct sigaction there;
    if (--up || sigaction(SIGBUS, NULL, &there) != 0)
        return;
    if (is_ours(&there)) /* otherwise somebody came after us, who may pass faults on to us */
        sigaction(SIGBUS, &before, NULL);
}

bool guarded(struct span memory, void (*work)(void *state), void *state, size_t *lost_at)
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
