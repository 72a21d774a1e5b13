"""A thread does what others have for it in their order, and some of it at a time."""

from __future__ import annotations

from collections import deque
from functools import partial

import pytest

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


@pytest.mark.parametrize("posted_after", [0, 2 * AT_ONCE])
def test_what_would_end_a_program_takes_no_other_task_along(posted_after: int):
    turns: deque[Task] = deque()
    inbox, done = Inbox(turns.append), []

    def leave() -> None:
        inbox.post(partial(done.append, "posted meanwhile"))
        raise SystemExit(3)

    inbox.post(partial(done.append, "before"))
    inbox.post(leave)
    inbox.post(partial(done.append, "after"))
    for number in range(posted_after):
        inbox.post(partial(done.append, number))
    with pytest.raises(SystemExit):
        turns.popleft()()
    while turns:
        assert len(turns) == 1, "it is woken once"
        turns.popleft()()
    assert done == ["before", "after", *range(posted_after), "posted meanwhile"]
