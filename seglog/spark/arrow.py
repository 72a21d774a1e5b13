"""Stretches as Arrow rows: how they travel from the tasks to the driver, and what a table of them holds.

One row for each stretch; what it says of queues are lists within. The columns are the attributes of
:class:`~seglog.storage.audit.stretches.Stretch`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Final

import pyarrow as pa

from seglog.storage.audit.stretches import BatchRun, Head, Interval, QueueEnd, Stopped, Stretch, UnitState
from seglog.storage.format.record import Damage

_DAMAGE: Final = pa.struct([("kind", pa.string()), ("expected", pa.string()), ("found", pa.string())])
_HEAD: Final = pa.struct(
    [
        ("store_timestamp_ms", pa.int64()),
        ("topic", pa.string()),
        ("queue_id", pa.int32()),
        ("queue_offset", pa.int64()),
    ]
)
_INTERVAL: Final = pa.struct(
    [
        ("topic", pa.string()),
        ("queue_id", pa.int32()),
        ("unit_state", pa.int32()),
        ("records", pa.int64()),
        ("size_bytes", pa.int64()),
        ("first_queue_offset", pa.int64()),
        ("first_phy_offset", pa.int64()),
        ("last_phy_offset", pa.int64()),
        ("min_store_timestamp_ms", pa.int64()),
        ("max_store_timestamp_ms", pa.int64()),
    ]
)
_BATCH_RUN: Final = pa.struct(
    [
        ("topic", pa.string()),
        ("queue_id", pa.int32()),
        ("records", pa.int64()),
        ("first_index", pa.int64()),
        ("units", pa.binary()),
    ]
)
_QUEUE_END: Final = pa.struct(
    [("topic", pa.string()), ("queue_id", pa.int32()), ("next_queue_offset", pa.int64())]
)
STRETCH: Final = pa.schema(
    [
        ("split", pa.int32()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("stopped", pa.int32()),
        ("damage", _DAMAGE),
        ("records", pa.int64()),
        ("size_bytes", pa.int64()),
        ("head", _HEAD),
        ("last_store_timestamp_ms", pa.int64()),
        ("max_store_timestamp_ms", pa.int64()),
        ("intervals", pa.list_(_INTERVAL)),
        ("batch_runs", pa.list_(_BATCH_RUN)),
        ("queue_ends", pa.list_(_QUEUE_END)),
        ("inner_topics", pa.list_(pa.string())),
    ]
)
"""The columns of a table of stretches."""

_SPARK_NAMES: Final = {pa.int32(): "int", pa.int64(): "bigint", pa.string(): "string", pa.binary(): "binary"}


def to_batch(stretches: Iterable[Stretch]) -> pa.RecordBatch:
    """Returns stretches as a batch of :data:`STRETCH`."""
    rows = [
        asdict(stretch) | {"damage": stretch.damage._asdict() if stretch.damage is not None else None}
        for stretch in stretches
    ]
    return pa.RecordBatch.from_pylist(rows, STRETCH)


def from_table(table: pa.Table) -> Iterator[Stretch]:
    """Yields the stretches of a table of :data:`STRETCH`."""
    for row in table.to_pylist():
        damage, head, intervals = row["damage"], row["head"], row["intervals"]
        row["stopped"] = Stopped(row["stopped"])
        row["damage"] = damage and Damage(**damage)
        row["head"] = head and Head(**head)
        row["intervals"] = tuple(
            Interval(**interval | {"unit_state": UnitState(interval["unit_state"])}) for interval in intervals
        )
        row["batch_runs"] = tuple(BatchRun(**run) for run in row["batch_runs"])
        row["queue_ends"] = tuple(QueueEnd(**end) for end in row["queue_ends"])
        row["inner_topics"] = tuple(row["inner_topics"])
        yield Stretch(**row)


def spark_schema() -> str:
    """Returns the columns of :data:`STRETCH` as Spark states them."""
    return ", ".join(f"`{field.name}` {_spark_type(field.type)}" for field in STRETCH)


def _spark_type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"array<{_spark_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'`{field.name}`: {_spark_type(field.type)}' for field in kind)}>"
    return _SPARK_NAMES[kind]
