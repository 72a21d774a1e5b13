"""Audits as tables, for SQL and notebooks: stores, findings and queues of reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from seglog.doctor.check import CheckReport, verdict_on
from seglog.spark.audit.unread import ERROR_COLUMNS, UnreadStore
from seglog.storage.audit import AuditQueue
from seglog.storage.findings import findings_fields
from seglog.storage.format.queue import plain_queue_kind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FINDING_COLUMNS: Final = (
    "store string, code string, severity string, file string, pos long, size long, expected string,"
    " found string, messages long, meaning string, forMessages string, fix string, command string,"
    " rocketmqLogs array<string>"
)
QUEUE_COLUMNS: Final = (
    "store string, topic string, queueId int, queueKind string, minOffset long, maxOffset long,"
    " records long, bytes long, gaps long, backwards long, firstStoreTimestamp long, lastStoreTimestamp long"
)
STORE_COLUMNS: Final = (
    f"store string, clean boolean, messages long, lostMessages long, mayBeMore boolean, findings long,"
    f" {ERROR_COLUMNS}"
)


def stores_frame(
    reports: Iterable[CheckReport], unread: Iterable[UnreadStore], spark: SparkSession
) -> DataFrame:
    """Returns a row for each store, :data:`STORE_COLUMNS`; an unread store has only its error."""
    rows: list[tuple[object, ...]] = [
        (
            report.store,
            report.is_clean,
            report.messages.messages,
            report.messages.lost,
            verdict_on(report).may_be_more,
            len(report.findings),
            *(None, None, None),
        )
        for report in reports
    ]
    for one in unread:
        store, *error = one.fields().values()
        rows.append((store, *(None, None, None, None, None), *error))
    return spark.createDataFrame(rows, STORE_COLUMNS)


def findings_frame(reports: Iterable[CheckReport], spark: SparkSession) -> DataFrame:
    """Returns the findings of reports as a table with the field names of JSON: :data:`FINDING_COLUMNS`."""
    rows = [tuple(row.values()) for report in reports for row in finding_rows(report)]
    return spark.createDataFrame(rows, FINDING_COLUMNS)


def queues_frame(reports: Iterable[CheckReport], spark: SparkSession) -> DataFrame:
    """Returns the queues of reports as a table: :data:`QUEUE_COLUMNS`."""
    rows = [tuple(row.values()) for report in reports for row in queue_rows(report)]
    return spark.createDataFrame(rows, QUEUE_COLUMNS)


def queue_kind(queue: AuditQueue) -> str:
    """Returns ``plain``, ``batch``, ``lmq`` or ``delay``."""
    return plain_queue_kind(queue.topic) if queue.kind == "plain" else queue.kind


def queue_rows(report: CheckReport) -> Iterator[dict[str, object]]:
    """Yields the queues of a report with the field names of JSON."""
    for queue in report.queues:
        yield {
            "store": report.store,
            "topic": queue.topic,
            "queueId": queue.queue_id,
            "queueKind": queue_kind(queue),
            "minOffset": queue.min_offset,
            "maxOffset": queue.max_offset,
            "records": queue.records,
            "bytes": queue.bytes,
            "gaps": queue.gaps,
            "backwards": queue.backwards,
            "firstStoreTimestamp": queue.first_store_timestamp_ms,
            "lastStoreTimestamp": queue.last_store_timestamp_ms,
        }


def finding_rows(report: CheckReport) -> Iterator[dict[str, object]]:
    """Yields the findings of a report with the field names of JSON."""
    for fields in findings_fields(report.findings):
        yield {"store": report.store, **fields}
