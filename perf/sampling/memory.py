"""Memory that the machine has before a measurement begins.

A virtual machine may give pages that it does not use back to its host, as ours does within seconds. The
next one to use such a page waits for the host: 10 µs for 4 KiB, against 0.7 µs for a page that is there.
A contestant that writes after a pause would be measured with it, and a fast writer would be measured by
little else.
"""

from __future__ import annotations

import mmap

from perf.plan.budget import Budget
from perf.plan.cases import Case, Workload

_PAGE_BYTES = mmap.PAGESIZE
_LOGS = {
    Workload.PUT: 1,
    Workload.BATCH: 1,
    Workload.TOGETHER: 2,
    Workload.LATENCY: 1,
    Workload.FLIGHT: 1,
    Workload.REOPEN: 1,
}
"""How many logs a sample fills, where it fills any."""


def make_ready(case: Case, budget: Budget) -> int:
    """Touches as much memory as a writer may fill, and gives it back: the kernel hands it out next.

    Returns:
        How many bytes, of whole pages.
    """
    pages = -(-budget.ready_bytes * _LOGS.get(case.workload, 0) // _PAGE_BYTES)
    size_bytes = pages * _PAGE_BYTES
    if not pages:
        return 0
    with mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        memory[::_PAGE_BYTES] = bytes(pages)
    return size_bytes
