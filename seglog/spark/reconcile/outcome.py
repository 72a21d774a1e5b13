"""A whole reconciliation in one call: verdicts about queues and messages, counted, and written somewhere."""

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
    """What a reconciliation found.

    Attributes:
        stores: Their directories.
        queues: The verdict for each group and queue.
        counts: Verdicts about messages; None if they were not asked for.
        rows: Messages that are neither delivered, passed nor pending, where they were asked for: read once,
            and while the session is there.
        unread: Stores that could not be read, while others could.
    """

    stores: list[str]
    queues: list[QueueVerdict]
    counts: MessageCounts | None
    rows: Iterator[dict[str, object]]
    unread: Sequence[UnreadStore] = ()

    @property
    def is_clean(self) -> bool:
        """Whether all was read, no verdict is a finding, and every message has its verdicts."""
        if self.unread or any(queue.verdict in QUEUE_FINDINGS for queue in self.queues):
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
        messages: Whether to judge messages too.
        receipts: Where receipts are.
        verify: Whether to compute checksums.
        folder: Where to write the tables ``stores``, ``queues`` and ``messages``; None for nowhere.
        form: ``parquet`` or ``json``.
        wants_rows: Whether to return messages that are neither delivered, passed nor pending.
        unread: Takes the stores that are not there or cannot be read, and the others are reconciled.

    Raises:
        As :func:`~seglog.spark.reconcile.stores.reconcile_stores`.
        InvalidArgumentError: The folder exists already, or receipts have not the columns that they need.
        SparkJobError: Receipts cannot be read, or there is no such ``form``.
    """
    told = None if receipts is None else load_receipts(spark, receipts)
    found = reconcile_stores(paths, spark=spark, earlier=earlier, verify=verify, unread=unread)
    if folder is not None:
        save_table(_store_frame(spark, found.stores, unread or ()), f"{folder}/stores", form)
        save_table(queue_frame(spark, found.queues), f"{folder}/queues", form)
    stores = [facts.store for facts in found.stores]
    if not messages or not stores:
        return Outcome(stores, found.queues, None, iter(()), tuple(unread or ()))
    frame = message_verdicts(spark, found.stores, told, verify=verify)
    if folder is not None:  # verdicts are made once, and counted where they were written
        made = f"{folder}/messages"
        save_table(frame, made, form)
        frame = spark.read.schema(frame.schema).format(form).load(made)
    counts = count_verdicts(frame, found.stores)
    rows = _rows(frame, counts) if wants_rows else iter(())
    return Outcome(stores, found.queues, counts, rows, tuple(unread or ()))


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
    """Yields what is neither delivered, passed nor pending.

    A second job makes these alone: to keep all verdicts of the first for it, 20 groups of 10 million
    messages have 200 million, takes longer than to make them.
    """
    if all(verdict in _USUAL for _group, _topic, verdict in counts.verdicts):
        return
    for batch in local_batches(frame.where(~frame["verdict"].isin(*_USUAL))):
        yield from batch.to_pylist()
