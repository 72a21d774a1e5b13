"""Reads one file of an archive in a task: counts its rows, and checks each row against itself.

A row is unchanged if its bytes have its ``recordCrc``, and if the columns that a restore uses agree with the
bytes. Nothing is sorted and nothing goes through Java; one row group is in memory at a time, batch by batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from seglog.spark.archive.folder import Key
from seglog.spark.archive.made.stretches import Noted
from seglog.spark.archive.record_crc import record_crcs
from seglog.spark.source.values.columns import BIGINT, BINARY, BOOL, INT, PROPERTY_MAP, STRING
from seglog.spark.source.values.strings import bytes_of
from seglog.storage.files import Files
from seglog.storage.format.names import MAX_QUEUE_ID
from seglog.storage.format.record import (
    INNER_BATCH,
    MIN_RECORD_BYTES,
    PLACEHOLDER_FLAG,
    PLACEHOLDER_PROPERTIES_BYTES,
)
from seglog.storage.kernels.gather import Bytes, Ints, Mask, copy_ranges, properties_ranges, read_heads

_TYPES: Final = {
    INT: ("run", "queueId", "size", "flag", "sysFlag"),
    BIGINT: ("queueOffset", "physicalOffset", "bornTimestamp", "storeTimestamp", "recordCrc"),
    STRING: ("topic", "bornHost", "storeHost"),
    BINARY: ("head", "body", "tail"),
    BOOL: ("placeholder",),
}
_READ: Final = {name: kind for kind, names in _TYPES.items() for name in names}
"""The columns that a restore uses, and the columns that identify the last record of a queue."""
_PARTS: Final = ("head", "body", "tail")
_OF_HEADS: Final = {
    "queueId": "queue_id",
    "flag": "flag",
    "queueOffset": "queue_offset",
    "sysFlag": "sys_flag",
    "bornTimestamp": "born_timestamp_ms",
}
"""Columns that repeat fields of the head of a record."""
_MADE: Final = ("topic", "recordCrc", "placeholder")
"""Columns that an archive of the first layout does not have."""
_BATCH_ROWS: Final = 16384
_BEYOND: Final = 512
"""Number of zero bytes after the records: reads of fields in a truncated record stay in bounds."""
_TOPIC_FOLDER: Final = "topic="
_Columns: TypeAlias = Mapping[str, pa.Array]


class ArchivedFile(NamedTuple):
    """A file of an archive.

    Attributes:
        path: Its path.
        name: Its name in the manifest, relative to ``data``.
        run: Number of its run.
        is_first_layout: Whether its archive has the first layout.
    """

    path: Path
    name: str
    run: int
    is_first_layout: bool


@dataclass(slots=True)
class HeldRows:
    """The contents of a file.

    Attributes:
        noted: The rows that were read.
        wanted: Numbers of messages, placeholders and bytes of the wanted rows.
        rows: Number of all rows.
        others: Number of rows that are not the archived ones.
        other: The first queue with such rows, and the lowest and the highest of their queue offsets.
        damage: Why the file cannot be read; empty if it can.
    """

    noted: Noted = field(default_factory=Noted)
    wanted: tuple[int, int, int] = (0, 0, 0)
    rows: int = 0
    others: int = 0
    other: tuple[str, int, int, int] | None = None
    damage: str = ""


def look_into(files: Files, file: ArchivedFile, topics: frozenset[str], ends: Mapping[Key, int]) -> HeldRows:
    """Reads all of a file of an archive.

    Args:
        files: Access to the archive.
        file: The file.
        topics: Topics to read, all if empty.
        ends: The first wanted queue offset, by topic and queue id; 0 for other queues.
    """
    held = HeldRows()
    try:
        for rows in _read(files, file):
            chosen = rows if not topics else _of_topics(rows, topics)
            if len(chosen):
                _take(held, chosen, file.run, ends)
    except (pa.ArrowException, OSError, KeyError) as error:
        held.damage = str(error) or type(error).__name__
    return held


def _read(files: Files, file: ArchivedFile) -> Iterator[pa.RecordBatch]:
    names = [name for name in _READ if not file.is_first_layout or name not in _MADE]
    with (
        closing(files.open(file.path, writable=False)) as handle,
        os.fdopen(os.dup(handle.descriptor), "rb") as opened,
        pq.ParquetFile(pa.PythonFile(opened, mode="r"), page_checksum_verification=True) as parquet,
    ):
        for number in range(parquet.num_row_groups):
            group = parquet.metadata.row_group(number)
            with_batches = [*names, "properties"] if _may_have_batches(group) else names
            for rows in parquet.iter_batches(_BATCH_ROWS, [number], with_batches):
                yield _completed(rows, file)


def _may_have_batches(group: pq.RowGroupMetaData) -> bool:
    for at in range(group.num_columns):
        column = group.column(at)
        if column.path_in_schema == "sysFlag":
            said = column.statistics
            is_told = said is not None and said.has_min_max
            return not is_told or said.min < 0 or said.max >= INNER_BATCH
    return True


def _completed(rows: pa.RecordBatch, file: ArchivedFile) -> pa.RecordBatch:
    """Returns rows with all columns, in their right types.

    Raises:
        ArrowException: A value is missing, or is of another type.
        KeyError: A column is missing.
    """
    columns = {}
    for name in [*_READ, *(["properties"] if "properties" in rows.schema.names else [])]:
        if file.is_first_layout and name in _MADE:
            continue
        columns[name] = rows.column(name).cast(_READ.get(name, PROPERTY_MAP))
        if columns[name].null_count and name in _READ:
            raise pa.ArrowInvalid(f"column {name} has a null")
    if file.is_first_layout:
        folder = file.name.split("/")[0].removeprefix(_TOPIC_FOLDER)
        columns["topic"] = pa.repeat(pa.scalar(unquote(folder), STRING), len(rows))
        buffer, starts, sizes = _records(columns)
        columns["recordCrc"] = pa.array(record_crcs(buffer, starts, sizes), BIGINT)
        columns["placeholder"] = pa.array(_are_placeholders(columns, buffer, starts, sizes))
    return pa.RecordBatch.from_pydict(columns)


def _take(held: HeldRows, rows: pa.RecordBatch, run: int, ends: Mapping[Key, int]) -> None:
    columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    offsets = _numbers(columns, "queueOffset")
    is_other = _are_others(columns, run)
    at = np.flatnonzero(is_other)
    if len(at):
        held.others += len(at)
        if held.other is None:
            key = columns["topic"][at[0]].as_py(), columns["queueId"][at[0]].as_py()
            held.other = (*key, int(offsets[at].min()), int(offsets[at].max()))
    held.rows += len(rows)
    is_wanted = offsets >= _ends(columns, ends)
    is_placeholder = _numbers(columns, "placeholder") != 0
    messages, placeholders, size_bytes = held.wanted
    held.wanted = (
        messages + int((is_wanted & ~is_placeholder).sum()),
        placeholders + int((is_wanted & is_placeholder).sum()),
        size_bytes + int(_numbers(columns, "size")[is_wanted].sum()),
    )
    held.noted.note(rows)


def _are_others(columns: _Columns, run: int) -> Mask:
    buffer, starts, sizes = _records(columns)
    found: Mask = sizes != _numbers(columns, "size")
    found |= sizes < MIN_RECORD_BYTES
    found |= _numbers(columns, "run") != run
    found |= record_crcs(buffer, starts, np.maximum(sizes, MIN_RECORD_BYTES)) != _numbers(
        columns, "recordCrc"
    )
    places = _numbers(columns, "physicalOffset")
    is_record, heads = read_heads(
        buffer, starts, places, np.maximum(sizes, MIN_RECORD_BYTES), list(_OF_HEADS.values())
    )
    found |= ~is_record
    for name, field_name in _OF_HEADS.items():
        found |= heads[field_name] != _numbers(columns, name)
    return found | ~_have_topics(columns)


def _records(columns: _Columns) -> tuple[Bytes, Ints, Ints]:
    """Returns the bytes of all records, one after the other, and the start and length of each."""
    parts = [bytes_of(columns[name]) for name in _PARTS]
    sizes = sum((part[2] for part in parts), np.zeros(len(columns["head"]), np.int64))
    starts = np.cumsum(sizes) - sizes
    buffer = np.zeros(int(sizes.sum()) + _BEYOND, np.uint8)
    at = starts
    for data, own_starts, own_sizes in parts:
        copy_ranges(data, own_starts, own_sizes, buffer, at)
        at = at + own_sizes
    return buffer, starts, sizes


def _have_topics(columns: _Columns) -> Mask:
    """Returns which records have the topic of their column, after a length field of one byte or two."""
    data, starts, sizes = bytes_of(columns["tail"])
    data = np.append(data, np.zeros(_BEYOND, np.uint8))
    topics = columns["topic"].dictionary_encode()
    numbers = topics.indices.to_numpy()
    found = np.zeros(len(starts), np.bool_)
    for number, topic in enumerate(topics.dictionary.to_pylist()):
        raw = np.frombuffer(topic.encode(), np.uint8)
        rows = np.flatnonzero(numbers == number)
        for length_bytes in (1, 2):
            fits = rows[sizes[rows] >= length_bytes + len(raw)]
            at = (starts[fits] + length_bytes)[:, None] + np.arange(len(raw))
            found[fits] |= (data[at] == raw).all(axis=1)
    return found


def _are_placeholders(columns: _Columns, buffer: Bytes, starts: Ints, sizes: Ints) -> Mask:
    found: Mask = (_numbers(columns, "flag") == PLACEHOLDER_FLAG) & (sizes >= MIN_RECORD_BYTES)
    rows = np.flatnonzero(found)
    names = ("magic", "sys_flag", "body_bytes")
    places = _numbers(columns, "physicalOffset")[rows]
    _valid, heads = read_heads(buffer, starts[rows], places, sizes[rows], names)
    ok, _starts, lengths = properties_ranges(buffer, starts[rows], sizes[rows], heads)
    found[rows] = ok & (heads["body_bytes"] == 0) & np.isin(lengths, list(PLACEHOLDER_PROPERTIES_BYTES))
    return found


def _of_topics(rows: pa.RecordBatch, topics: frozenset[str]) -> pa.RecordBatch:
    encoded = rows.column("topic").dictionary_encode()
    wanted = np.array([topic in topics for topic in encoded.dictionary.to_pylist()], np.bool_)
    return rows.filter(pa.array(wanted[encoded.indices.to_numpy()]))


def _ends(columns: _Columns, ends: Mapping[Key, int]) -> Ints:
    """Returns for each row the first wanted queue offset of its queue."""
    found = np.zeros(len(columns["topic"]), np.int64)
    if not ends:
        return found
    topics = columns["topic"].dictionary_encode()
    both = topics.indices.to_numpy().astype(np.int64) * (MAX_QUEUE_ID + 1) + _numbers(columns, "queueId")
    queues, of_queue = np.unique(both, return_inverse=True)
    names = topics.dictionary.to_pylist()
    keys = [divmod(number, MAX_QUEUE_ID + 1) for number in queues.tolist()]
    own = [ends.get((names[topic], queue_id), 0) for topic, queue_id in keys]
    return np.array(own, np.int64)[of_queue]


def _numbers(columns: _Columns, name: str) -> Ints:
    numbers: Ints = columns[name].to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers
