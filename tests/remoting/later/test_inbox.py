"""A thread does what others have for it in their order, and some of it at a time."""

from __future__ import annotations

from collections import deque
from functools import partial

from seglog.remoting.later.inbox import AT_ONCE, Inbox, Task


def test_much_that_was_posted_is_done_in_portions_and_in_order():
    turns: deque[Task] = deque()
    inbox, done = Inbox(turns.append), []
    for number in range(3 * AT_ONCE + 1):
        inbox.post(partial(done.append, number))
    portions = []
    while turns:
        assert len(turns) == 1, "it is woken once for all that came"
        turns.popleft()()
        portions.append(len(done))
        if len(portions) == 2:
            inbox.post(lambda: done.append("late"))
    assert portions == [AT_ONCE, 2 * AT_ONCE, 3 * AT_ONCE, 3 * AT_ONCE + 2]
    assert done == [*range(3 * AT_ONCE + 1), "late"]
