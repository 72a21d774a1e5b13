"""Audits of stores: a check report for each, from one job over all of them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from seglog.clock import Clock
from seglog.doctor.check import SPLIT_BYTES, CheckReport, StoreCheck
from seglog.spark.audit.job import StoreWalk, walk_on_spark
from seglog.spark.audit.unread import Unread, unread_into
from seglog.spark.checked_remote import checked_files
from seglog.spark.remote_files import is_address
from seglog.spark.session import session_for
from seglog.spark.source.wanted.identity import check_distinct
from seglog.spark.task_errors import job_errors
from seglog.storage.splits import KnownRecords

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@job_errors()
def audit_stores(
    paths: Iterable[str | PathLike[str]],
    *,
    spark: SparkSession | None = None,
    split_bytes: int = SPLIT_BYTES,
    verify: bool = True,
    clock: Clock | None = None,
    unread: Unread | None = None,
    known: KnownRecords | None = None,
) -> list[CheckReport]:
    """Audits stores; reads only.

    Args:
        paths: The store directories, or their addresses. Every machine of the cluster must be able to read
            them.
        spark: A session; None takes the active one, or starts one on this machine and stops it at the end.
            The workers of a session that :func:`seglog.spark.session.local_session` did not create must have
            seglog installed.
        split_bytes: Bytes of the log that a task reads at a time, a multiple of 64 KiB.
        verify: Whether to compute checksums; everything else is always checked.
        clock: Measures the duration.
        unread: Collects the stores that do not exist or cannot be read, while the others are audited.
        known: Records that were checked when they were written; only for a single store.

    Returns:
        The report of :func:`seglog.doctor.check.check.check_store` for each store that can be read.

    Raises:
        NotFoundError: There is nothing at a path, or the host of an address is unknown. With ``unread`` this
            and the next two errors are collected instead.
        NotAStoreError: The path is not a store.
        UnsupportedStoreError: A store of another kind.
        InvalidArgumentError: ``split_bytes`` is too small, or a store is named twice.
        MissingDependencyError: PySpark or Java is missing, and a session had to be started.
        SparkJobError: The Spark job failed.
    """
    named = [os.fspath(path) for path in paths]
    check_distinct(named)
    stores = [path if is_address(path) else str(Path(path).absolute()) for path in named]
    checks: list[tuple[str, str, StoreCheck]] = []
    walks: list[StoreWalk] = []
    for path, store in zip(named, stores, strict=True):
        with unread_into(unread, path, store):
            check = _check(store, clock, split_bytes=split_bytes, verify=verify, known=known)
            walks.append(StoreWalk.of(check, store))
            checks.append((path, store, check))
    if not checks:
        return []
    with session_for(spark, "seglog audit") as session:
        walked = walk_on_spark(walks, session, goes_on=unread is not None)
    reports: list[CheckReport] = []
    for (path, store, check), walk in zip(checks, walked, strict=True):
        with unread_into(unread, path, store):
            if walk.error is not None:
                raise walk.error
            reports.append(check.conclude(walk.outcomes, walk.of_chains, walk.unreadable))
    return reports


def audit_store(
    path: str | PathLike[str], *, spark: SparkSession | None = None, known: KnownRecords | None = None
) -> CheckReport:
    """Audits one store; arguments and errors are those of :func:`audit_stores`."""
    (report,) = audit_stores([path], spark=spark, known=known)
    return report


def _check(
    store: str, clock: Clock | None, *, split_bytes: int, verify: bool, known: KnownRecords | None
) -> StoreCheck:
    files, root = checked_files(store)
    address = store if is_address(store) else ""
    return StoreCheck(
        root, clock, split_bytes=split_bytes, verify=verify, files=files, address=address, known=known
    )
