"""One Spark session for all tests that need one: starting it takes longer than they do."""

from __future__ import annotations

import os

import pytest

from seglog.spark.session import java_problem, local_session, pyspark_problem


@pytest.fixture(scope="session")
def spark():
    """A session on this machine."""
    problem = pyspark_problem() or java_problem()
    if problem is not None:
        # In CI a missing Java must not pass for a verdict.
        if os.environ.get("CI"):
            pytest.fail(f"the Spark tests cannot run: {problem}", pytrace=False)
        pytest.skip(problem)
    session = local_session("seglog tests", conf={"spark.sql.shuffle.partitions": "4"})
    yield session
    session.stop()
