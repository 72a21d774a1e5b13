"""Rows on their way into a store: tasks encode and check them, and write them to files beside it.

The driver reads runs from the files: rows of one queue that one call appends. Rows of a queue keep
their order. The division into runs depends only on the file and on the length of the store's segments, so
an append that is tried again has the same runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seglog.errors import InvalidArgumentError, MessageIllegalError
from seglog.spark.source.write.journal import Staged
from seglog.spark.source.write.written_columns import cast_columns, written_columns
from seglog.storage.format.names import check_queue_id, check_topic
from seglog.storage.format.record import Host, tags_code
from seglog.storage.format.record import properties as props
from seglog.storage.format.record import sys_flag as flags
from seglog.storage.format.system_names import is_business_topic
from seglog.storage.store import DEFAULT_MAX_MESSAGE_BYTES
from seglog.storage.writes import RawMessage

_OWN_FLAGS: Final = flags.BORN_HOST_V6 | flags.STORE_HOST_V6
_MAX_PROPERTIES_BYTES: Final = props.MAX_PROPERTIES_BYTES - props.CRC_PROPERTY_BYTES
_ROWS: Final = 4096
_RUN_BYTES: Final = 1 << 20
_SCHEMA: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("body", pa.binary()),
        ("queueId", pa.int32()),
        ("flag", pa.int32()),
        ("properties", pa.binary()),
        ("tagsCode", pa.int64()),
        ("bornTimestamp", pa.int64()),
        ("bornHost", pa.string()),
        ("reconsumeTimes", pa.int32()),
        ("sysFlag", pa.int32()),
        ("preparedTransactionOffset", pa.int64()),
    ]
)
_OF_RUN: Final = (
    "topic",
    "queueId",
    "sysFlag",
    "bornTimestamp",
    "bornHost",
    "reconsumeTimes",
    "preparedTransactionOffset",
)
"""Fields that are the same for all messages of a run."""
_OR_NULL: Final = frozenset({"bornTimestamp", "bornHost"})


@dataclass(frozen=True, slots=True)
class Run:
    """Messages to append together, as the arguments of :meth:`MessageStore.append_batch`."""

    topic: str
    queue_id: int
    sys_flag: int
    born_timestamp_ms: int | None
    born_host: Host | None
    reconsume_times: int
    prepared_transaction_offset: int
    messages: list[RawMessage]

    @property
    def is_alone(self) -> bool:
        """Whether its messages are appended one by one: inner batches, or parts of transactions."""
        state = self.sys_flag & (flags.INNER_BATCH | flags.TRANSACTION_MASK)
        return bool(state or self.prepared_transaction_offset)


def stage(batches: Iterable[pa.RecordBatch], path: Path, number: int, topic: str | None = None) -> Staged:
    """Writes the rows of a task to a new file.

    Args:
        batches: The rows.
        path: The file.
        number: As in :class:`Staged`.
        topic: Topic for all of them; None for the topic of each row.

    Raises:
        MessageIllegalError: A row cannot be a message.
        InvalidArgumentError: A row is for a topic that only the broker writes.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = 0
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, _SCHEMA) as writer:
        for batch in batches:
            columns = written_columns(batch.schema, has_topic=topic is not None)
            made = _encoded(cast_columns(batch, columns, topic))
            _check(made)
            writer.write_batch(made)
            rows += made.num_rows
    _sync(path)
    return Staged(number, path, rows)


def _sync(path: Path) -> None:
    """Makes a file durable: a job that was interrupted continues with it."""
    for one in (path, path.parent):
        handle = os.open(one, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def staged_runs(staged: Staged, segment_size_bytes: int) -> Iterator[Run]:
    """Yields the rows of a file, a run at a time.

    Args:
        staged: The file.
        segment_size_bytes: Length of a commit-log file: a run must fit into one.
    """
    run_bytes = min(_RUN_BYTES, segment_size_bytes // 4)
    with pa.memory_map(str(staged.path)) as memory, pa.ipc.open_file(memory) as file:
        rows = file.read_all()
        for first in range(0, rows.num_rows, _ROWS):
            part = rows.slice(first, _ROWS).combine_chunks()
            yield from _runs(part, run_bytes)


def _runs(part: pa.Table, run_bytes: int) -> Iterator[Run]:
    codes = {name: _codes(part.column(name)) for name in _OF_RUN}
    order = np.lexsort((codes["queueId"], codes["topic"]))
    part = part.take(pa.array(order))
    differs = np.zeros(len(order), np.bool_)
    differs[0] = True
    for code in codes.values():
        differs[1:] |= np.diff(code[order]) != 0
    sizes = pc.add(pc.binary_length(part.column("body")), pc.binary_length(part.column("properties")))
    cuts = _cuts(differs, np.asarray(sizes, np.int64), run_bytes)
    columns = {
        name: part.column(name).to_pylist() for name in (*_OF_RUN, "body", "properties", "tagsCode", "flag")
    }
    for start, end in zip(cuts, [*cuts[1:], len(order)], strict=True):
        messages = [
            RawMessage(*values)
            for values in zip(
                *(columns[name][start:end] for name in ("body", "properties", "tagsCode", "flag")),
                strict=True,
            )
        ]
        topic, queue_id, sys_flag, born, host, times, prepared = (columns[name][start] for name in _OF_RUN)
        host = None if host is None else Host.parse(host)
        yield Run(topic, queue_id, sys_flag, born, host, times, prepared, messages)


def _codes(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    chunk = encoded.chunk(0) if isinstance(encoded, pa.ChunkedArray) else encoded
    return np.asarray(chunk.indices, np.int64)


def _cuts(differs: npt.NDArray[np.bool_], sizes: npt.NDArray[np.int64], run_bytes: int) -> list[int]:
    """Returns the starts of runs: a run ends where a field differs, or before it is too long."""
    cuts, length = [], 0
    for at, (is_other, size) in enumerate(zip(differs.tolist(), sizes.tolist(), strict=True)):
        if is_other or length + size > run_bytes:
            cuts.append(at)
            length = 0
        length += size
    return cuts


def _encoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns a batch in the schema of the files."""
    names, count = batch.schema.names, batch.num_rows
    given = batch.select([name for name in ("properties", "keys", "tags") if name in names])
    raws, codes = [], []
    for number, row in enumerate(given.to_pylist() if given.num_columns else [{}] * count):
        raw = _properties(row)
        raws.append(raw)
        tags = props.find_property(raw, props.TAGS.encode()) if raw else None
        codes.append(tags_code(_tags_text(number, tags)) if tags else 0)
    arrays = {"properties": pa.array(raws, pa.binary()), "tagsCode": pa.array(codes, pa.int64())}
    for field in _SCHEMA:
        if field.name in arrays:
            continue
        if field.name not in names:
            arrays[field.name] = pa.nulls(count, field.type)
        else:
            arrays[field.name] = batch.column(field.name).cast(field.type)
        if field.name not in _OR_NULL and field.name not in ("topic", "body"):
            arrays[field.name] = pc.fill_null(arrays[field.name], 0)
    arrays["sysFlag"] = pc.bit_wise_and(arrays["sysFlag"], pa.scalar(~_OWN_FLAGS, pa.int32()))
    return pa.RecordBatch.from_arrays([arrays[field.name] for field in _SCHEMA], schema=_SCHEMA)


def _check(batch: pa.RecordBatch) -> None:
    for topic in pc.unique(batch.column("topic")).to_pylist():
        check_topic(topic)
        if not is_business_topic(topic):
            raise InvalidArgumentError(
                f"{topic} is RocketMQ's own: only a broker writes into it",
                help="leave out such topics: they are not what producers send to",
            )
    for queue_id in pc.unique(batch.column("queueId")).to_pylist():
        check_queue_id(queue_id)
    for host in pc.unique(batch.column("bornHost")).to_pylist():
        if host is not None:
            Host.parse(host)
    for name, most in (("body", DEFAULT_MAX_MESSAGE_BYTES), ("properties", _MAX_PROPERTIES_BYTES)):
        longest = pc.max(pc.binary_length(batch.column(name))).as_py() or 0
        if longest > most:
            raise MessageIllegalError(
                f"a message is too large: {longest} bytes of {name}",
                help=f"bodies may have {DEFAULT_MAX_MESSAGE_BYTES} bytes, properties {_MAX_PROPERTIES_BYTES}",
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
        named = _decoded(raw) if replaced else {}
        if all(named.get(name) == value for name, value in replaced.items()):
            return props.without_crc_property(raw)
    else:
        # A map, or the headers of Kafka, whose values are bytes.
        named = _named(map(_entry, given or ()))
    named.pop(props.CRC32, None)
    return props.encode_properties({**named, **replaced})


def _entry(entry: tuple[str, str] | Mapping[str, Any]) -> tuple[str, str | bytes | None]:
    return entry if isinstance(entry, tuple) else (entry["key"], entry["value"])


def _named(entries: Iterable[tuple[str, str | bytes | None]]) -> dict[str, str]:
    """Returns properties by name, without those that have no value, because RocketMQ has no such properties.

    Raises:
        MessageIllegalError: A value is no text, or a name has two.
    """
    found: dict[str, str] = {}
    seen: set[str] = set()
    for name, value in entries:
        if name in seen:
            raise MessageIllegalError(
                f"a row has two headers or properties of the name {name!r}",
                help="RocketMQ has one value for a name: give them names of their own, or put them into one",
            )
        seen.add(name)
        if value:
            found[name] = _text(name, value)
    return found


def _decoded(raw: bytes) -> dict[str, str]:
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        raise MessageIllegalError(
            f"a row has properties that are not UTF-8, beside a column of keys or tags: {error}",
            help="leave keys and tags out to write such properties as they are",
        ) from error
    return props.decode_properties(raw)


def _tags_text(number: int, tags: bytes) -> str:
    try:
        return tags.decode()
    except UnicodeDecodeError as error:
        raise MessageIllegalError(
            f"row {number} of a batch has properties whose TAGS are not UTF-8: expected text, found {tags!r}",
            help="a queue unit has a code of the tags as text: give them as the column tags, or leave the"
            " row out",
        ) from error


def _text(name: str, value: str | bytes) -> str:
    if isinstance(value, str):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise MessageIllegalError(
            f"a row has a header {name!r} that is not UTF-8: {error}",
            help=f"properties are text: write {name!r} as text, such as base64(value)",
        ) from error
