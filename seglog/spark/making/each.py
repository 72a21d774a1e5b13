"""Runs several pieces of work as one job: each in a task, on files that the task opens anew."""

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
"""Pieces of work that a task does one after the other, and does again if it is killed."""
T = TypeVar("T")
R = TypeVar("R")


def run_each(
    spark: SparkSession, folder: Path, do: Callable[[RestoringFiles, T], R], work: Sequence[T]
) -> list[R]:
    """Calls a function for each of several pieces of work; returns the results, which are small, in order.

    Args:
        spark: The session.
        folder: The folder that all files of the work are in; every machine must see it.
        do: What is done. It may be done twice, and then writes the same.
        work: The pieces; they can be pickled.
    """
    pieces = [pickle.dumps(one) for one in work]  # a task makes objects of its own ones only

    def run(number: int) -> R:
        piece = pickle.loads(pieces[number])  # noqa: S301 - made above
        return do(StoreRoot(folder), piece)

    return run_numbered(spark, len(work), task_count(spark, len(work)), run)


def task_count(spark: SparkSession, count: int) -> int:
    """Returns how many tasks share so many pieces of work."""
    return max(_TASKS_A_CORE * spark.sparkContext.defaultParallelism, count // _MOST_A_TASK)
