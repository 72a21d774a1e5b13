"""One Spark session for all tests that need one: starting it takes longer than they do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from seglog.spark.session import local_session
from tests.support.machine.spark_here import need_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session on this machine."""
    need_spark()
    session = local_session("seglog tests", conf={"spark.sql.shuffle.partitions": "4"})
    yield session
    session.stop()
