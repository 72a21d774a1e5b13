"""A Java that several commands share, each with a session of its own: they take less than its start does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from seglog.spark.session import start_java
from tests.support.machine.lent_session import variables_of


@contextmanager
def shared_java() -> Iterator[dict[str, str]]:
    """Starts Java; returns variables of commands that run in it, as they do under ``spark-submit``."""
    from pyspark import SparkConf

    gateway = start_java(SparkConf().setMaster("local[*]"), is_brief=True)
    try:
        yield variables_of(gateway)
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
