"""The session that a job runs in, with its progress on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from seglog.cli.spark.options import Cluster
from seglog.cli.ui import render
from seglog.spark.progress import watch_tasks
from seglog.spark.session import Session, plain_errors, session_for
from seglog.storage.format.names import COMMIT_LOG


@contextmanager
def job_session(cluster: Cluster, step: str, stores: Iterable[str | Path] = ()) -> Iterator[Session]:
    """Lends a session, and shows how many tasks are done and how long the others may take.

    Args:
        cluster: Where it runs.
        step: What is being done, such as ``auditing``.
        stores: What is read.

    Raises:
        MissingDependencyError: PySpark or Java is missing.
        SeglogError: A task, or Spark, could not do it.
    """
    with (
        session_for(None, f"seglog {step}", cluster.master, cluster.settings, _log_bytes(stores)) as session,
        render.progress(step, unit="tasks") as tell,
        watch_tasks(session, tell),
        plain_errors(),
    ):
        yield session


def _log_bytes(stores: Iterable[str | Path]) -> int | None:
    """Returns how long the logs on this machine are, None if none is."""
    from seglog.spark.remote_files import is_address, locate  # pyarrow, which help does without

    here = [locate(str(store)) for store in stores if not is_address(str(store))]
    return (
        sum(entry.size_bytes for files, root in here for entry in files.list_dir(root / COMMIT_LOG)) or None
    )
