"""One Spark session for all tests that need one: starting it takes longer than they do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pytest

from seglog.spark.session import local_session
from tests.support.machine.order import SESSION, needs_session
from tests.support.machine.spark_here import need_spark
from tests.support.scale import is_gate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OBJECT_STORE_KEYS: Final = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""What a client of an S3 server wants to know, in this process and in workers."""
INTERPRETED: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Spark interprets its plans: to compile Java for them costs more than few rows do. The campaign compiles."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Refuses a test that asks for the session where the scheduler does not see it."""
    file = item.nodeid.partition("::")[0]
    if "spark" in getattr(item, "fixturenames", ()) and not needs_session(file, item.config.rootpath):
        raise pytest.UsageError(f"{item.nodeid}: tests ask for the session by '{SESSION}'")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session on this machine."""
    need_spark()
    settings = {"spark.sql.shuffle.partitions": "2", "spark.driver.extraJavaOptions": "-Xmn400m"}
    if is_gate():
        settings |= INTERPRETED
    settings |= {f"spark.executorEnv.{name}": value for name, value in OBJECT_STORE_KEYS.items()}
    session = local_session("seglog tests", conf=settings, log_bytes=0)
    yield session
    session.stop()
