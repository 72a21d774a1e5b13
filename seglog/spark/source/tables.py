"""Other tables of a store: its queues, the offsets of its consumer groups, and the entries of its index.

The tables of queues and of offsets are small, and one task for each store makes them; the index is read with
one task for each file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seglog.doctor.tables import OffsetTable
from seglog.errors import InvalidArgumentError
from seglog.spark.remote_files import locate
from seglog.spark.source.values.columns import TIMESTAMP, check_nullable
from seglog.spark.source.values.times import timestamps
from seglog.spark.source.wanted.options import Options
from seglog.storage.directory import IndexFile, list_index_files
from seglog.storage.files import Files
from seglog.storage.format.index import INDEX_ENTRY
from seglog.storage.survey import survey

_STRING: Final = pa.string()
_LONG: Final = pa.int64()
_INT: Final = pa.int32()
_MS: Final = 1000
_PIECE_ENTRIES: Final = 1 << 16

SCHEMAS: Final = {
    "queues": pa.schema(
        [
            ("store", _STRING),
            ("brokerName", _STRING),
            ("topic", _STRING),
            ("queueId", _INT),
            ("kind", _STRING),
            ("minOffset", _LONG),
            ("maxOffset", _LONG),
            ("messages", _LONG),
            ("maxPhysicalOffset", _LONG),
        ]
    ),
    "offsets": pa.schema(
        [
            ("store", _STRING),
            ("brokerName", _STRING),
            ("consumerGroup", _STRING),
            ("topic", _STRING),
            ("queueId", _INT),
            ("queueOffset", _LONG),
            ("broadcast", pa.bool_()),
        ]
    ),
    "index": pa.schema(
        [
            ("store", _STRING),
            ("brokerName", _STRING),
            ("file", _STRING),
            ("entry", _INT),
            ("keyHash", _INT),
            ("physicalOffset", _LONG),
            ("storeTimestamp", TIMESTAMP),
            ("previousEntry", _INT),
        ]
    ),
}
"""Columns of each table; ``entry`` counts from 1, ``previousEntry`` is 0 where a chain ends, and
``storeTimestamp`` is known to the second."""


@dataclass(frozen=True, slots=True)
class TablePiece:
    """The part of a table that one task reads.

    Attributes:
        store: Index of its store among the paths.
        root: The store directory.
        file: The index file, None for other tables.
    """

    store: int
    root: Path
    file: Path | None = None


def plan_table(options: Options) -> list[TablePiece]:
    """Returns the parts of a table that tasks read."""
    stores = [locate(path) for path in options.paths]
    if options.table != "index":
        return [TablePiece(number, root) for number, (_files, root) in enumerate(stores)]
    return [
        TablePiece(number, root, file.path)
        for number, (files, root) in enumerate(stores)
        for file in list_index_files(files, root)[0]
    ]


def read_table(piece: TablePiece, options: Options, names: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a part, with the requested columns under the names of the request."""
    path = options.paths[piece.store]
    files, _root = locate(path)
    schema = SCHEMAS[options.table]
    made = {"queues": _queues, "offsets": _offsets, "index": _index}[options.table]
    for columns in made(piece, options, files):
        count = len(next(iter(columns.values())))
        columns["store"] = pa.repeat(pa.scalar(path, _STRING), count)
        columns["brokerName"] = pa.repeat(pa.scalar(options.broker_name(piece.store), _STRING), count)
        wanted = pa.schema([schema.field(name).with_name(asked) for asked, name in names.items()])
        yield pa.RecordBatch.from_arrays([columns[name] for name in names.values()], schema=wanted)


def check_table_schema(table: str, schema: pa.Schema) -> dict[str, str]:
    """Returns the columns that a schema requests, by their names there, in letters of any case.

    Raises:
        InvalidArgumentError: There is no such column, or it is of another type.
    """
    known = {field.name.lower(): field for field in SCHEMAS[table]}
    found = {}
    for field in schema:
        column = known.get(field.name.lower())
        if column is None or column.type != field.type:
            raise InvalidArgumentError(
                f"the table of {table} has no column {field.name!r} of type {field.type}",
                help=f"columns are {', '.join(SCHEMAS[table].names)}",
            )
        check_nullable(field)
        found[field.name] = column.name
    return found


def _queues(piece: TablePiece, options: Options, files: Files) -> Iterator[dict[str, pa.Array]]:
    found = survey(piece.root, files, verify=options.verify)
    rows = [
        (topic, queue_id, "plain", state.min_offset, state.max_offset, state.max_phy_offset)
        for (topic, queue_id), state in found.queues.items()
    ] + [
        (topic, queue_id, "batch", batch.min_offset, batch.max_offset, batch.max_phy_offset)
        for (topic, queue_id), batch in found.batch_queues.items()
    ]
    rows = sorted(row for row in rows if options.selection.has_topic(row[0]))
    topics, queue_ids, kinds, firsts, ends, places = zip(*rows, strict=True) if rows else ((),) * 6
    low, high = pa.array(firsts, _LONG), pa.array(ends, _LONG)
    yield {
        "topic": pa.array(topics, _STRING),
        "queueId": pa.array(queue_ids, _INT),
        "kind": pa.array(kinds, _STRING),
        "minOffset": low,
        "maxOffset": high,
        "messages": pa.array(np.subtract(high.to_numpy(), low.to_numpy())),
        "maxPhysicalOffset": pa.array(places, _LONG),
    }


def _offsets(piece: TablePiece, options: Options, files: Files) -> Iterator[dict[str, pa.Array]]:
    known = OffsetTable(files, piece.root).all()
    rows = [one for one in known if options.selection.has_topic(one.topic)]
    yield {
        "consumerGroup": pa.array([one.group for one in rows], _STRING),
        "topic": pa.array([one.topic for one in rows], _STRING),
        "queueId": pa.array([one.queue_id for one in rows], _INT),
        "queueOffset": pa.array([one.queue_offset for one in rows], _LONG),
        "broadcast": pa.array([one.is_broadcast for one in rows], pa.bool_()),
    }


def _index(piece: TablePiece, _options: Options, files: Files) -> Iterator[dict[str, pa.Array]]:
    for file in list_index_files(files, piece.root)[0]:
        if file.path != piece.file:
            continue
        with closing(files.open(file.path, writable=False)) as handle:
            for first in range(1, file.header.index_count, _PIECE_ENTRIES):
                count = min(_PIECE_ENTRIES, file.header.index_count - first)
                buffer = memoryview(bytearray(count * INDEX_ENTRY.size_bytes))
                handle.read_into(buffer, file.geometry.entries_at + first * INDEX_ENTRY.size_bytes)
                yield _entries(file, first, np.frombuffer(buffer, INDEX_ENTRY.dtype))


def _entries(file: IndexFile, first: int, entries: npt.NDArray[np.void]) -> dict[str, pa.Array]:
    times_ms = file.header.begin_timestamp_ms + entries["time_diff_s"].astype(np.int64) * _MS
    return {
        "file": pa.repeat(pa.scalar(file.path.name, _STRING), len(entries)),
        "entry": pa.array(np.arange(first, first + len(entries), dtype=np.int32)),
        "keyHash": pa.array(entries["key_hash"].astype(np.int32)),
        "physicalOffset": pa.array(entries["phy_offset"].astype(np.int64)),
        "storeTimestamp": timestamps(times_ms),
        "previousEntry": pa.array(entries["previous_entry"].astype(np.int32)),
    }
