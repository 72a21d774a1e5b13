"""Verifies every record of a store and holds its queues against them, in splits on Spark.

A survey reads one file after the other in one process; an audit reads many at a time on as many machines
as see the files. Tasks walk splits and send stretches (:mod:`seglog.spark.job`), which the driver puts
together (:mod:`seglog.storage.audit.conclude`).
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from seglog.storage.audit.conclude import conclude
from seglog.storage.audit.plan import plan_audit
from seglog.storage.audit.report import AuditReport
from seglog.storage.audit.splits import DEFAULT_SPLIT_BYTES
from seglog.storage.files import RealFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def audit_store(
    path: str | PathLike[str],
    *,
    spark: SparkSession | None = None,
    split_bytes: int = DEFAULT_SPLIT_BYTES,
    verify: bool = True,
) -> AuditReport:
    """Audits a store; reads only.

    Args:
        path: The store directory. Every machine of the cluster must see it there.
        spark: A session; None takes the active one, or starts one on this machine and stops it at the end.
            The workers of a session that was not made by :func:`seglog.spark.session.local_session` must
            have seglog installed.
        split_bytes: Bytes of the log that a task reads at a time, at least 1024.
        verify: Whether to compute checksums; everything else is always checked.

    Raises:
        NotFoundError: There is nothing at ``path``.
        NotAStoreError: Something else is there.
        UnsupportedStoreError: The store is of another kind.
        InvalidArgumentError: ``split_bytes`` is too small.
        MissingDependencyError: PySpark or Java is missing, and a session had to be made.
    """
    from seglog.spark.session import session_for

    files = RealFiles()
    plan = plan_audit(Path(path), files, split_bytes=split_bytes, verify=verify)
    with session_for(spark, "seglog audit") as session:
        from seglog.spark.job import scan_on_spark

        return conclude(plan, scan_on_spark(plan, session), files)
