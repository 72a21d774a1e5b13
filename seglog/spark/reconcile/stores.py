"""Reconciliations of stores: the facts about each, and the verdict for each group and queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

from seglog.spark.audit.stores import audit_stores
from seglog.spark.audit.unread import Unread, unread_into
from seglog.spark.reconcile.facts import StoreFacts, load_facts
from seglog.spark.reconcile.queue_verdicts import Earlier, QueueKey, QueueVerdict, queue_verdicts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Reconciled:
    """Stores whose groups were compared with their queues.

    Attributes:
        stores: The facts about them, for :func:`~seglog.spark.reconcile.messages.message_verdicts`.
        queues: The verdict for each group and queue.
    """

    stores: list[StoreFacts]
    queues: list[QueueVerdict]


def reconcile_stores(
    paths: Iterable[str | PathLike[str]],
    *,
    spark: SparkSession | None = None,
    earlier: Mapping[QueueKey, Earlier] | None = None,
    verify: bool = True,
    unread: Unread | None = None,
) -> Reconciled:
    """Compares groups with queues; reads only.

    The ends of queues come from an audit, which walks the logs.

    Args:
        paths: The store directories.
        spark: As for :func:`~seglog.spark.audit.stores.audit_stores`.
        earlier: An earlier result (:func:`~seglog.spark.reconcile.since.load_earlier`); without one no group
            is stalled.
        verify: Whether to compute checksums; records with any other damage count as present.
        unread: Collects the stores that do not exist or cannot be read, while the others are reconciled.

    Raises:
        As :func:`~seglog.spark.audit.stores.audit_stores`.
    """
    stores: list[StoreFacts] = []
    for report in audit_stores(paths, spark=spark, verify=verify, unread=unread):
        with unread_into(unread, report.store, report.store):
            stores.append(load_facts(report))
    return Reconciled(stores, queue_verdicts(stores, earlier))
