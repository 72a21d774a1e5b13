"""A whole reconciliation in one call: computes, counts and writes verdicts about queues and messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Final

from seglog.spark.audit.unread import ERROR_COLUMNS, Unread, UnreadStore
from seglog.spark.local_batches import local_batches
from seglog.spark.reconcile.counts import MessageCounts, count_verdicts
from seglog.spark.reconcile.facts import StoreFacts
from seglog.spark.reconcile.messages import message_verdicts
from seglog.spark.reconcile.queue_verdicts import Earlier, QueueKey, QueueVerdict
from seglog.spark.reconcile.receipts import load_receipts
from seglog.spark.reconcile.stores import reconcile_stores
from seglog.spark.reconcile.verdicts import DELIVERED, MESSAGE_FINDINGS, PASSED, PENDING, QUEUE_FINDINGS
from seglog.spark.save import save_table
from seglog.spark.task_errors import job_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_USUAL: Final = (DELIVERED, PASSED, PENDING)
QUEUE_COLUMNS: Final = (
    "store string, group string, topic string, queueId int, offset long, minOffset long, maxOffset long,"
    " lag long, missed long, verdict string, status string"
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a reconciliation.

    Attributes:
        stores: The directories of the stores.
        queues: The verdict for each group and queue.
        counts: The numbers of verdicts about messages; None if the caller did not request them.
        rows: Messages that are neither delivered, passed nor pending, if the caller requested them. They can
            be read once, while the session is open.
        unread: Stores that could not be read, while others could.
        unseen: What the verdicts do not show of stores that could be read: the store, and what, in words.
    """

    stores: list[str]
    queues: list[QueueVerdict]
    counts: MessageCounts | None
    rows: Iterator[dict[str, object]]
    unread: Sequence[UnreadStore] = ()
    unseen: Sequence[tuple[str, str]] = ()

    @property
    def is_clean(self) -> bool:
        """Whether all was read and seen, no verdict is a finding, and every message has its verdicts."""
        if self.unread or self.unseen or any(queue.verdict in QUEUE_FINDINGS for queue in self.queues):
            return False
        if self.counts is None:
            return True
        found = {verdict for _group, _topic, verdict in self.counts.verdicts}
        return self.counts.adds_up and not found & MESSAGE_FINDINGS


@job_errors()
def reconcile_all(
    spark: SparkSession,
    paths: Iterable[str | PathLike[str]],
    *,
    earlier: Mapping[QueueKey, Earlier] | None = None,
    messages: bool = False,
    receipts: str | None = None,
    verify: bool = True,
    folder: str | None = None,
    form: str = "parquet",
    wants_rows: bool = False,
    unread: Unread | None = None,
) -> Outcome:
    """Reconciles stores.

    Args:
        spark: A session.
        paths: The store directories.
        earlier: An earlier result.
        messages: Whether to compute verdicts about messages.
        receipts: File or folder of receipts.
        verify: Whether to compute checksums.
        folder: Folder for the tables ``stores``, ``queues`` and ``messages``; None writes no tables.
        form: ``parquet`` or ``json``.
        wants_rows: Whether to return messages that are neither delivered, passed nor pending.
        unread: Collects the stores that do not exist or cannot be read, while the others are reconciled.

    Raises:
        As :func:`~seglog.spark.reconcile.stores.reconcile_stores`.
        InvalidArgumentError: The folder exists already, or receipts lack columns that they need.
        SparkJobError: Receipts cannot be read, or ``form`` is unknown.
    """
    told = None if receipts is None else load_receipts(spark, receipts)
    found = reconcile_stores(paths, spark=spark, earlier=earlier, verify=verify, unread=unread)
    if folder is not None:
        save_table(_store_frame(spark, found.stores, unread or ()), f"{folder}/stores", form)
        save_table(queue_frame(spark, found.queues), f"{folder}/queues", form)
    stores = [facts.store for facts in found.stores]
    unseen = [(facts.store, text) for facts in found.stores for text in facts.unseen]
    if not messages or not stores:
        return Outcome(stores, found.queues, None, iter(()), tuple(unread or ()), unseen)
    frame = message_verdicts(spark, found.stores, told, verify=verify)
    if folder is not None:  # verdicts are computed once, and counted in the files that they were written to
        made = f"{folder}/messages"
        save_table(frame, made, form)
        frame = spark.read.schema(frame.schema).format(form).load(made)
    counts = count_verdicts(frame, found.stores)
    rows = _rows(frame, counts) if wants_rows else iter(())
    return Outcome(stores, found.queues, counts, rows, tuple(unread or ()), unseen)


def _store_frame(
    spark: SparkSession, stores: Iterable[StoreFacts], unread: Iterable[UnreadStore]
) -> DataFrame:
    rows: list[tuple[object, ...]] = [(facts.store, None, None, None) for facts in stores]
    rows += [tuple(one.fields().values()) for one in unread]
    return spark.createDataFrame(rows, f"store string, {ERROR_COLUMNS}")


def queue_frame(spark: SparkSession, queues: Iterable[QueueVerdict]) -> DataFrame:
    """Returns verdicts about queues as a table: :data:`QUEUE_COLUMNS`."""
    return spark.createDataFrame([tuple(queue.fields().values()) for queue in queues], QUEUE_COLUMNS)


def _rows(frame: DataFrame, counts: MessageCounts) -> Iterator[dict[str, object]]:
    """Yields the messages that are neither delivered, passed nor pending.

    A second job computes only these. Caching all verdicts of the first job for it would take longer: 20
    groups of 10 million messages have 200 million verdicts.
    """
    if all(verdict in _USUAL for _group, _topic, verdict in counts.verdicts):
        return
    for batch in local_batches(frame.where(~frame["verdict"].isin(*_USUAL))):
        yield from batch.to_pylist()
