"""Rows on their way into a store: tasks put them in files beside it, the driver takes them out again.

A row needs ``topic`` and ``body``. ``queueId`` is 0 where there is none. ``keys`` and ``tags`` become
properties, and replace those of that name in ``properties``. Of a row that was read from a store, what says
its old place is left out: a message gets a new place and store time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from seglog.errors import InvalidArgumentError, MessageIllegalError
from seglog.spark.source.values import columns
from seglog.storage.format.record import Host, tags_code
from seglog.storage.format.record import properties as props
from seglog.storage.format.record import sys_flag as flags

_TAKEN: Final = (
    "topic",
    "body",
    "queueId",
    "flag",
    "properties",
    "keys",
    "tags",
    "bornTimestamp",
    "bornHost",
    "reconsumeTimes",
    "sysFlag",
    "preparedTransactionOffset",
)
_NEEDED: Final = ("topic", "body")
_OWN_FLAGS: Final = flags.BORN_HOST_V6 | flags.STORE_HOST_V6
_ROWS: Final = 4096


@dataclass(frozen=True, slots=True)
class NewRow:
    """A message to be appended; as the arguments of :meth:`MessageStore.append`."""

    topic: str
    queue_id: int
    body: bytes
    properties: bytes
    tags_code: int
    flag: int
    sys_flag: int
    born_timestamp_ms: int | None
    born_host: Host | None
    reconsume_times: int
    prepared_transaction_offset: int


@dataclass(frozen=True, slots=True)
class Staged:
    """What one task put aside.

    Attributes:
        number: Place of the task's partition: files are appended in that order.
        path: The file; several attempts at a partition have files of their own.
        rows: How many there are.
    """

    number: int
    path: Path
    rows: int


def check_written_schema(schema: pa.Schema) -> None:
    """Refuses columns that no message is made of.

    Raises:
        InvalidArgumentError: A column is missing, not known or of another type.
    """
    for name in _NEEDED:
        if name not in schema.names:
            raise InvalidArgumentError(f"there is no column {name!r}: a message has topic and body")
    columns.wanted_columns(schema)


def stage(batches: Iterable[pa.RecordBatch], path: Path, number: int) -> Staged:
    """Writes the rows of a task to a new file.

    Raises:
        MessageIllegalError: A row has no topic or no body.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = 0
    writer: pa.RecordBatchFileWriter | None = None
    try:
        for batch in batches:
            kept = batch.select([name for name in _TAKEN if name in batch.schema.names])
            for name in _NEEDED:
                if kept.column(name).null_count:
                    raise MessageIllegalError(f"a row has no {name}", help="leave such rows out")
            writer = writer or pa.ipc.new_file(path, kept.schema)
            writer.write_batch(kept)
            rows += kept.num_rows
    finally:
        if writer is not None:
            writer.close()
    return Staged(number, path, rows)


def staged_rows(staged: Staged) -> Iterator[NewRow]:
    """Yields the rows of a file."""
    if not staged.rows:
        return
    with pa.memory_map(str(staged.path)) as memory, pa.ipc.open_file(memory) as file:
        for number in range(file.num_record_batches):
            batch = file.get_batch(number)
            for first in range(0, batch.num_rows, _ROWS):
                # Times as numbers: no timestamp of Python goes as far as those of Arrow.
                part = _with_numbers(batch.slice(first, _ROWS))
                for row in part.to_pylist():
                    yield _new_row(row)


def _with_numbers(batch: pa.RecordBatch) -> pa.RecordBatch:
    at = batch.schema.get_field_index("bornTimestamp")
    if at < 0 or not pa.types.is_timestamp(batch.schema.field(at).type):
        return batch
    times = batch.column(at).cast(pa.timestamp("ms", tz="UTC"), safe=False).cast(pa.int64())
    return batch.set_column(at, "bornTimestamp", times)


def _new_row(row: Mapping[str, Any]) -> NewRow:
    raw = _properties(row)
    host = row.get("bornHost")
    return NewRow(
        row["topic"],
        row.get("queueId") or 0,
        row["body"],
        raw,
        tags_code((props.find_property(raw, props.TAGS.encode()) or b"").decode()),
        row.get("flag") or 0,
        (row.get("sysFlag") or 0) & ~_OWN_FLAGS,
        row.get("bornTimestamp"),
        None if host is None else Host.parse(host),
        row.get("reconsumeTimes") or 0,
        row.get("preparedTransactionOffset") or 0,
    )


def _properties(row: Mapping[str, Any]) -> bytes:
    given = row.get("properties")
    replaced = {
        name: row[column]
        for column, name in (("keys", props.KEYS), ("tags", props.TAGS))
        if row.get(column) is not None
    }
    if isinstance(given, str | bytes):
        raw = given.encode() if isinstance(given, str) else given
        named = props.decode_properties(raw)
        if all(named.get(name) == value for name, value in replaced.items()):
            return props.without_crc_property(raw)
    else:
        named = {name: value for name, value in given or () if value}
    named.pop(props.CRC32, None)
    return props.encode_properties({**named, **replaced})
