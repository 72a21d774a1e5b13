"""The session that a job runs in, with its progress on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from seglog.cli.spark.options import Cluster
from seglog.cli.ui import render
from seglog.spark.progress import watch_tasks
from seglog.spark.session import Session, plain_errors, session_for


@contextmanager
def job_session(cluster: Cluster, step: str) -> Iterator[Session]:
    """Lends a session, and shows how many tasks are done and how long the others may take.

    Args:
        cluster: Where it runs.
        step: What is being done, such as ``auditing``.

    Raises:
        MissingDependencyError: PySpark or Java is missing.
        SparkJobError: Spark could not do it.
    """
    with (
        session_for(None, f"seglog {step}", cluster.master, cluster.settings) as session,
        render.progress(step, unit="tasks") as tell,
        watch_tasks(session, tell),
        plain_errors(),
    ):
        yield session
