"""The columns of an archive that are derived from the data source's columns, in Arrow, batch by batch.

A record is kept as ``head``, ``body`` and ``tail``, so that readers of Parquet find the body, and a restore
finds all bytes. The code takes a few steps for each batch and none for each record, except for the CRC.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seglog.spark.archive.columns import COLUMNS, FOLDER_CHARACTERS, PARTITIONS, names_of
from seglog.spark.archive.manifest import HIVE_NULL
from seglog.spark.archive.record_crc import record_crcs
from seglog.spark.source.values.strings import bytes_of, gather
from seglog.storage.format.record import HEADS, HOST_BITS, INNER_BATCH
from seglog.storage.format.record import properties as props
from seglog.storage.kernels.gather import Ints

IN_FILES: Final = tuple(name for name in names_of(COLUMNS) if name not in PARTITIONS)
"""The columns of a file, in order; the others are in the names of its folders."""
_MADE: Final = ("run", "head", "tail", "recordCrc")
_NOT_IN_FOLDERS: Final = re.compile(r"[^A-Za-z0-9_-]")
_ESCAPED: Final = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{\[\]^]")
"""Characters that Hive writes as ``%XX`` in names of folders."""
_DAY_MS: Final = 86_400_000
_HEAD_BYTES: Final = np.zeros(HOST_BITS + 1, np.int64)
for _bits, _layout in HEADS.items():
    _HEAD_BYTES[_bits] = _layout.size_bytes


def with_made(batch: pa.RecordBatch, run: int) -> pa.RecordBatch:
    """Returns records with all columns of a file, :data:`IN_FILES`.

    Args:
        batch: Rows with the columns :data:`~seglog.spark.archive.columns.READ`.
        run: Number of the run.
    """
    data, starts, sizes = bytes_of(batch.column("record"))
    flags = batch.column("sysFlag").to_numpy(zero_copy_only=False)
    head_sizes = np.minimum(_HEAD_BYTES[flags & HOST_BITS], sizes)
    tail_at = np.minimum(head_sizes + pc.binary_length(batch.column("body")).to_numpy(), sizes)
    made = {
        "run": pa.repeat(pa.scalar(run, pa.int32()), len(batch)),
        "head": gather(data, starts, head_sizes),
        "tail": gather(data, starts + tail_at, sizes - tail_at),
        "recordCrc": pa.array(record_crcs(data, starts, sizes), pa.int64()),
    }
    arrays = [made[name] if name in _MADE else batch.column(name) for name in IN_FILES]
    return pa.RecordBatch.from_arrays(arrays, list(IN_FILES))


def folders_of(batch: pa.RecordBatch, store: str) -> tuple[Ints, list[str]]:
    """Returns the folder of the archive for each row.

    Args:
        batch: Rows with ``topic`` and ``storeTimestamp``.
        store: Name of the store in the archive.

    Returns:
        ``(n,)`` indices into a list, and the list: folders relative to ``data``, each once.
    """
    topics = batch.column("topic").dictionary_encode()
    days, of_day = np.unique(
        batch.column("storeTimestamp").to_numpy(zero_copy_only=False) // _DAY_MS, return_inverse=True
    )
    both, of_both = np.unique(
        topics.indices.to_numpy().astype(np.int64) * len(days) + of_day, return_inverse=True
    )
    names = [_topic_folder(topic) for topic in topics.dictionary.to_pylist()]
    texts = np.datetime_as_string(days.astype("datetime64[D]")).tolist()
    folders = [
        f"store={_escaped(store)}/topicFolder={names[number // len(days)]}/day={texts[number % len(days)]}"
        for number in both.tolist()
    ]
    distinct = {folder: at for at, folder in enumerate(dict.fromkeys(folders))}
    return np.array([distinct[folder] for folder in folders], np.int64)[of_both], list(distinct)


def slots_of(batch: pa.RecordBatch) -> Ints:
    """Returns the number of queue offsets of each record, ``(n,)``: more than one for an inner batch."""
    slots = np.ones(len(batch), np.int64)
    flags = batch.column("sysFlag").to_numpy(zero_copy_only=False)
    for row in np.flatnonzero(flags & INNER_BATCH).tolist():
        slots[row] = _number(dict(batch.column("properties")[row].as_py()).get(props.INNER_NUM))
    return slots


def _topic_folder(topic: str) -> str:
    return _NOT_IN_FOLDERS.sub("_", topic)[:FOLDER_CHARACTERS] or HIVE_NULL


def _escaped(name: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found.group()):02X}", name)


def _number(text: str | None) -> int:
    """Returns a number as Spark casts it; 1 if the text is no number."""
    try:
        return int(text) if text is not None else 1
    except ValueError:
        return 1
