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
_WRITERS = frozenset({Workload.PUT, Workload.BATCH, Workload.TOGETHER, Workload.LATENCY, Workload.REOPEN})


def make_ready(case: Case, budget: Budget) -> None:
    """Touches as much memory as a writer may fill, and gives it back: the kernel hands it out next."""
    size_bytes = budget.ready_bytes(case.body_bytes) if case.workload in _WRITERS else 0
    if not size_bytes:
        return
    with mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        memory[::_PAGE_BYTES] = bytes(size_bytes // _PAGE_BYTES)
