"""Jobs whose tasks take numbers: the results stand in the order of these."""

from __future__ import annotations

import gc

import pytest
from pyspark.sql import SparkSession

from seglog.errors import NotFoundError
from seglog.spark.numbered_tasks import run_numbered
from seglog.spark.task_errors import plain_errors

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(("count", "tasks"), [(0, 4), (1, 4), (7, 3), (7, 0)])
def test_results_stand_in_the_order_of_their_numbers(spark: SparkSession, count, tasks):
    assert run_numbered(spark, count, tasks, lambda number: (number, b"x" * number)) == [
        (number, b"x" * number) for number in range(count)
    ]


def test_numbers_are_shared_by_so_many_tasks(spark: SparkSession):
    def task(_number):
        from pyspark import TaskContext

        context = TaskContext.get()
        return None if context is None else context.partitionId()

    assert run_numbered(spark, 6, 3, task) == [0, 0, 1, 1, 2, 2]


def test_workers_keep_their_modules_out_of_the_search_for_circles(spark: SparkSession):
    assert min(run_numbered(spark, 2, 2, lambda _number: gc.get_freeze_count())) > 10_000


def test_an_error_of_a_task_arrives_with_its_class(spark: SparkSession):
    def fail(number):
        raise NotFoundError(f"there is no {number}", help="look elsewhere")

    with pytest.raises(NotFoundError, match="there is no 0") as raised, plain_errors():
        run_numbered(spark, 1, 1, fail)
    assert raised.value.help == "look elsewhere"
