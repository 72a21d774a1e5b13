"""Runs several pieces of work as one job: each in a task, with files that the task opens itself."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from seglog.spark.numbered_tasks import run_numbered
from seglog.storage.files import RestoringFiles, StoreRoot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TASKS_A_CORE: Final = 4
_MOST_A_TASK: Final = 16
"""Most pieces of work of a task, which it repeats if it is killed."""
T = TypeVar("T")
R = TypeVar("R")


def run_each(
    spark: SparkSession, folder: Path, do: Callable[[RestoringFiles, T], R], work: Sequence[T]
) -> list[R]:
    """Calls a function for each of several pieces of work; returns the results, which are small, in order.

    Args:
        spark: The session.
        folder: The folder that contains all files of the work; every machine must see it.
        do: The function. It may be called twice for a piece, and must then write the same bytes.
        work: The pieces; they must be picklable.
    """
    pieces = [pickle.dumps(one) for one in work]  # so that a task only unpickles its own pieces

    def run(number: int) -> R:
        piece = pickle.loads(pieces[number])  # noqa: S301 - made above
        return do(StoreRoot(folder), piece)

    return run_numbered(spark, len(work), task_count(spark, len(work)), run)


def task_count(spark: SparkSession, count: int) -> int:
    """Returns the number of tasks for a number of pieces of work."""
    return max(_TASKS_A_CORE * spark.sparkContext.defaultParallelism, count // _MOST_A_TASK)
