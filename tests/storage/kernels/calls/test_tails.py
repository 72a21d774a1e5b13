"""The tails in C hold what those in Python do."""

from __future__ import annotations

import pytest

from seglog.storage.kernels.calls.tails import NEVER, PythonLogTail, PythonQueueTail
from tests.support.machine.kernels import BOTH, native


def types(kernels):
    return (PythonLogTail, PythonQueueTail) if kernels == "python" else (native().LogTail, native().QueueTail)


@pytest.mark.parametrize("kernels", BOTH)
def test_tips_say_what_was_stated_of_them_last(kernels: str):
    log_tail, queue_tip = types(kernels)
    log = log_tail(10, -1, 5, 7)
    assert (log.end_phy_offset, log.last_phy_offset, log.last_store_ms, log.newest_store_ms) == (10, -1, 5, 7)
    assert (log.wake_allocator_at, log.is_shut) == (NEVER, False)
    log.end_phy_offset = NEVER
    with log:
        assert (log.end_phy_offset, log.is_shut) == (NEVER, True)
    assert not log.is_shut
    queue = queue_tip(1, 2, -1)
    queue.max_offset += 1
    assert (queue.min_offset, queue.max_offset, queue.max_phy_offset) == (1, 3, -1)


@pytest.mark.parametrize("kernels", BOTH)
def test_a_tip_is_not_made_of_part_of_what_it_says(kernels: str):
    for tail in types(kernels):
        with pytest.raises(TypeError):
            tail(1)
