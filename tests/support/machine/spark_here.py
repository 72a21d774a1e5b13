"""Whether Spark runs on this machine; tests that need it skip where it does not, but not in CI."""

from __future__ import annotations

import os

import pytest

from seglog.spark.session import java_problem, pyspark_problem
from tests.support.machine.java_classes import quicken_java


def need_spark() -> None:
    """Skips the test with what is missing; in CI, where that must not pass for a verdict, it fails."""
    problem = pyspark_problem() or java_problem()
    if problem is None:
        quicken_java()
        return
    if os.environ.get("CI"):
        pytest.fail(f"the tests of Spark cannot run: {problem}", pytrace=False)
    pytest.skip(problem)
