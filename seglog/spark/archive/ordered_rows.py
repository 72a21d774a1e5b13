"""The records of an archive in the order of the new log, with placeholders and tombstones among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from seglog.errors import StoreError
from seglog.spark.archive.columns import names_of
from seglog.spark.archive.gap_records import gap_batches, gap_record, lost_record
from seglog.spark.archive.restore_plan import NOTHING_BESIDE, RestorePlan
from seglog.spark.small_frames import small_frame
from seglog.storage.format.record import INNER_BATCH
from seglog.storage.format.record import properties as props

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

ORDER: Final = ("orderRun", "orderPlace", "queueOffset")
"""The columns by which records are sorted."""
_RECORD: Final = "concat(head, body, tail) AS record"
_ORDERED: Final = "orderRun int, orderPlace bigint, queueOffset bigint, record binary"
_FILLED: Final = (
    "filledTopic string, filledQueue int, filledFirst bigint, filledEnd bigint, besideRun int,"
    " besidePlace bigint"
)
_BESIDE: Final = ("topic", "queueId", "queueOffset", "run", "physicalOffset", "sysFlag", "head", "tail")
_PIECE: Final = 1 << 20
"""Number of records that one task makes."""


class _Beside(NamedTuple):
    """A record that others are placed beside: its run, its place, and the records that are made after it."""

    run: int
    place: int
    placeholder: bytes
    tombstone: bytes


_Places = Mapping[tuple[str, int, int], _Beside]


def ordered_rows(spark: SparkSession, archived: DataFrame, rows: DataFrame, plan: RestorePlan) -> DataFrame:
    """Returns records, placeholders and tombstones, with the columns :data:`ORDER` to sort them by.

    Args:
        spark: The session.
        archived: All rows of the store in the archive.
        rows: The wanted rows.
        plan: The plan, which has the gaps and the records that later runs filled in.

    Raises:
        StoreError: There is a gap in a queue of inner batches.
    """
    if not plan.gaps and not plan.filled:
        return rows.selectExpr("run AS orderRun", "physicalOffset AS orderPlace", "queueOffset", _RECORD)
    places = _find_places(spark, archived, plan)
    filled = small_frame(
        spark,
        _FILLED,
        [(*one[:4], *places[one.topic, one.queue_id, one.beside][:2]) for one in plan.filled],
    )
    is_filled = (
        (rows["topic"] == filled["filledTopic"])
        & (rows["queueId"] == filled["filledQueue"])
        & (rows["queueOffset"] >= filled["filledFirst"])
        & (rows["queueOffset"] < filled["filledEnd"])
    )
    records = rows.join(filled, is_filled, "left").selectExpr(
        "coalesce(besideRun, run) AS orderRun",
        "coalesce(besidePlace, physicalOffset) AS orderPlace",
        "queueOffset",
        _RECORD,
    )
    return records.unionByName(_made(spark, plan, places)) if plan.gaps else records


def _find_places(spark: SparkSession, archived: DataFrame, plan: RestorePlan) -> _Places:
    wanted = {(one.topic, one.queue_id, one.beside) for one in (*plan.gaps, *plan.filled)}
    frame = small_frame(spark, "topic string, queueId int, queueOffset bigint", sorted(wanted))
    found: dict[tuple[str, int, int], _Beside] = {}
    for row in archived.join(frame, ["topic", "queueId", "queueOffset"]).select(*_BESIDE).collect():
        if not row["sysFlag"] & INNER_BATCH:
            found[row["topic"], row["queueId"], row["queueOffset"]] = _beside(
                row, row["topic"], row["queueId"]
            )
    alone = [key for key in wanted if key[2] == NOTHING_BESIDE]
    if alone:
        first = archived.orderBy("run", "physicalOffset").select(*_BESIDE).first()
        found |= {key: _beside(first, *key[:2]) for key in alone if first is not None}
    for topic, queue_id, _offset in sorted(wanted - found.keys()):
        raise StoreError(
            f"{topic}/{queue_id} has inner batches, between which no placeholder can be",
            help="leave the topic out, or import the messages with new offsets",
        )
    return found


def _beside(row: Row, topic: str, queue_id: int) -> _Beside:
    record_crc = props.ends_with_record_crc(bytes(row["tail"]))
    head = bytes(row["head"])
    placeholder = gap_record(head, topic, record_crc=record_crc)
    tombstone = lost_record(head, topic, queue_id, record_crc=record_crc)
    return _Beside(row["run"], row["physicalOffset"], placeholder, tombstone)


def _made(spark: SparkSession, plan: RestorePlan, places: _Places) -> DataFrame:
    pieces = [
        (first, min(first + _PIECE, gap.end), places[gap.topic, gap.queue_id, gap.beside], gap.is_lost)
        for gap in plan.gaps
        for first in range(gap.first, gap.end, _PIECE)
    ]
    names = names_of(_ORDERED)

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                first, end, beside, is_lost = pieces[number]
                record = beside.tombstone if is_lost else beside.placeholder
                for offsets, records in gap_batches(record, first, end):
                    runs = pa.repeat(pa.scalar(beside.run, pa.int32()), len(offsets))
                    order = pa.repeat(pa.scalar(beside.place, pa.int64()), len(offsets))
                    columns = [runs, order, pa.array(offsets), records]
                    yield pa.RecordBatch.from_arrays(columns, names)

    return spark.range(0, len(pieces), 1, len(pieces)).mapInArrow(make, _ORDERED)
