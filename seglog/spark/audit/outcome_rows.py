"""What splits saw as Arrow rows: how it travels from the tasks to the driver, and what a table of it holds.

One row for each stretch; what it says of queues are lists within. The columns are the attributes of
:class:`~seglog.storage.splits.stretches.Stretch`, ``seen`` those of
:class:`~seglog.doctor.check.record_observer.Seen`. What belongs to the split as a whole stands in its first
row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from itertools import groupby
from typing import Any, Final

import pyarrow as pa

from seglog.doctor.check import Seen, SplitOutcome
from seglog.storage.findings import Finding
from seglog.storage.format.record import Damage
from seglog.storage.index_check import KeyDiff, Places
from seglog.storage.splits import BatchRun, Interval, QueueEnd, Stretch, UnitState
from seglog.storage.walk import Head, Stopped

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
_PLACES: Final = pa.struct([("count", pa.int64()), ("first", pa.int64()), ("last", pa.int64())])
_MINUTE: Final = pa.struct([("minute", pa.int64()), ("records", pa.int64()), ("size_bytes", pa.int64())])
_SEEN: Final = pa.struct(
    [
        ("records", pa.int64()),
        ("with_crc", pa.int64()),
        ("minutes", pa.list_(_MINUTE)),
        (
            "keys",
            pa.struct(
                [
                    ("keys", pa.int64()),
                    ("changed", pa.list_(pa.int64())),
                    ("absent", _PLACES),
                    ("stray", _PLACES),
                    ("late", _PLACES),
                ]
            ),
        ),
    ]
)
_FINDING: Final = pa.struct(
    [
        ("code", pa.string()),
        ("file", pa.string()),
        ("position_bytes", pa.int64()),
        ("size_bytes", pa.int64()),
        ("expected", pa.string()),
        ("found", pa.string()),
        ("messages", pa.int64()),
    ]
)
OUTCOME: Final = pa.schema(
    [
        ("store", pa.int32()),
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
        ("seen", _SEEN),
        ("sums", pa.list_(pa.int64())),
        ("findings", pa.list_(_FINDING)),
    ]
)
"""The columns of a table of outcomes; ``store`` is the number of the store in the job.

A row without a split says what is wrong with an index file.
"""

_STRETCH: Final = tuple(field.name for field in fields(Stretch))
_Row = dict[str, Any]  # a row as pyarrow has it: every column is built anew from it

_SPARK_NAMES: Final = {pa.int32(): "int", pa.int64(): "bigint", pa.string(): "string", pa.binary(): "binary"}


def to_batch(store: int, outcome: SplitOutcome | None, findings: Sequence[Finding]) -> pa.RecordBatch:
    """Returns what a task saw as a batch of :data:`OUTCOME`.

    Args:
        store: Number of the store in the job.
        outcome: What a split saw, None where the task did something else.
        findings: What the task found itself.
    """
    rows: list[_Row] = [
        asdict(stretch)
        | {
            "store": store,
            "damage": stretch.damage._asdict() if stretch.damage is not None else None,
            "seen": asdict(seen) | {"minutes": [_minute(*part) for part in seen.minutes]},
            "sums": (),
            "findings": (),
        }
        for stretch, seen in (zip(outcome.stretches, outcome.seen, strict=True) if outcome else ())
    ] or [{"store": store}]
    rows[0] |= {"sums": outcome.sums if outcome else (), "findings": [asdict(one) for one in findings]}
    return pa.RecordBatch.from_pylist(rows, OUTCOME)


def from_table(table: pa.Table) -> Iterator[tuple[int, SplitOutcome | None, list[Finding]]]:
    """Yields what :func:`to_batch` was given from a table of :data:`OUTCOME`, whose rows stay together."""
    # A batch at a time: as objects of Python, rows take many times their room in the table.
    every = (row for batch in table.to_batches() for row in batch.to_pylist())
    for (store, split), group in groupby(every, key=lambda row: (row["store"], row["split"])):
        rows = list(group)
        findings = [Finding(**finding) for row in rows for finding in row["findings"]]
        if split is None:
            yield store, None, findings
            continue
        rows.sort(key=lambda row: int(row["start"]))
        outcome = SplitOutcome(
            split,
            tuple(value for row in rows for value in row["sums"]),
            tuple(map(_stretch, rows)),
            tuple(_seen(row["seen"]) for row in rows),
        )
        yield store, outcome, findings


def _minute(minute: int, records: int, size_bytes: int) -> _Row:
    return {"minute": minute, "records": records, "size_bytes": size_bytes}


def _stretch(row: _Row) -> Stretch:
    damage, head = row["damage"], row["head"]
    return Stretch(
        **{name: row[name] for name in _STRETCH}
        | {
            "stopped": Stopped(row["stopped"]),
            "damage": damage and Damage(**damage),
            "head": head and Head(**head),
            "intervals": tuple(
                Interval(**one | {"unit_state": UnitState(one["unit_state"])}) for one in row["intervals"]
            ),
            "batch_runs": tuple(BatchRun(**run) for run in row["batch_runs"]),
            "queue_ends": tuple(QueueEnd(**end) for end in row["queue_ends"]),
            "inner_topics": tuple(row["inner_topics"]),
        }
    )


def _seen(row: _Row) -> Seen:
    keys = row["keys"]
    places = (Places(**keys[name]) for name in ("absent", "stray", "late"))
    diff = KeyDiff(keys["keys"], tuple(keys["changed"]), *places)
    minutes = tuple((part["minute"], part["records"], part["size_bytes"]) for part in row["minutes"])
    return Seen(row["records"], row["with_crc"], minutes, diff)


def spark_schema() -> str:
    """Returns the columns of :data:`OUTCOME` as Spark states them."""
    return ", ".join(f"`{field.name}` {_spark_type(field.type)}" for field in OUTCOME)


def _spark_type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"array<{_spark_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'`{field.name}`: {_spark_type(field.type)}' for field in kind)}>"
    return _SPARK_NAMES[kind]
