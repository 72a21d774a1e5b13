"""The progress of the Spark jobs that this process started: tasks that are done, and all tasks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from seglog.joining import join

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import SparkSession

_EVERY_S: Final = 0.25

Tell = Callable[[int, int], None]


@contextmanager
def watch_tasks(session: SparkSession, tell: Tell) -> Iterator[None]:
    """Reports the number of done tasks and of all tasks, from a thread, within the block.

    Args:
        session: The session.
        tell: Called with both numbers; never again after the block.
    """
    tracker = session.sparkContext.statusTracker()
    is_over = threading.Event()
    thread = threading.Thread(
        target=_watch, args=(tracker, tell, is_over), name="seglog-progress", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        join(thread)


def _watch(tracker: StatusTracker, tell: Tell, is_over: threading.Event) -> None:
    from py4j.protocol import Py4JError

    while not is_over.wait(_EVERY_S):
        try:
            done, total = task_counts(tracker)
        except (Py4JError, ConnectionError):
            return  # Java is gone, and the job raises the error
        if total:
            tell(done, total)


def task_counts(tracker: StatusTracker) -> tuple[int, int]:
    """Returns the number of done tasks and of all tasks of the running stages.

    Stages that wait for others are not counted: Spark replans them when those are done.
    """
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    known = [stage for stage in stages if stage is not None]
    return sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)
