"""The Spark session of a job, with its progress on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from seglog.cli.spark.interrupts import plain_interrupts
from seglog.cli.spark.options import Cluster
from seglog.cli.ui import render
from seglog.errors import SeglogError
from seglog.spark.progress import watch_tasks
from seglog.spark.session import Session, session_for
from seglog.spark.task_errors import plain_errors
from seglog.storage.format.names import COMMIT_LOG

_TABLES: Final = "spark.sql.warehouse.dir"


@contextmanager
def job_session(cluster: Cluster, step: str, stores: Iterable[str | Path] = ()) -> Iterator[Session]:
    """Yields a session, and shows the number of tasks that are done and the remaining time.

    Args:
        cluster: The cluster that runs the job.
        step: Name of the step, such as ``auditing``.
        stores: The stores that are read.

    Raises:
        MissingDependencyError: PySpark or Java is missing.
        SeglogError: A task, or Spark, failed.
    """
    with (
        plain_interrupts() as take_back,
        # Spark's own folder for tables would be in the user's working directory.
        TemporaryDirectory(prefix="seglog-spark-") as tables,
        session_for(
            None,
            f"seglog {step}",
            cluster.master,
            {_TABLES: Path(tables).as_uri()} | cluster.settings,
            _log_bytes(stores),
        ) as session,
        render.progress(step, unit="tasks") as tell,
        watch_tasks(session, tell),
        plain_errors(),
    ):
        take_back()
        yield session


def _log_bytes(stores: Iterable[str | Path]) -> int | None:
    """Returns the length of the logs on this machine, None if there is none."""
    from seglog.spark.remote_files import is_address, locate  # pyarrow, which help does without

    size_bytes = 0
    for store in stores:
        if not is_address(str(store)):
            files, root = locate(str(store))
            with suppress(OSError, SeglogError):  # the job reports the error
                size_bytes += sum(entry.size_bytes for entry in files.list_dir(root / COMMIT_LOG))
    return size_bytes or None
