"""What is erased never comes back from the attic: its bytes there become zeros, wherever they lay.

Besides the stretches of the erased places that is every record of the attic that states such a place, as one
under the name of another file does, or has the key that was erased: a tombstone may stand in for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from seglog.storage.attic import iter_kept
from seglog.storage.certain_mends.erased_places import ErasedPlace, note_erased
from seglog.storage.certain_mends.from_attic import AtticRecord, log_place, records_in_attic
from seglog.storage.files import Files
from seglog.storage.format.attic_entry import ATTIC_HEAD_BYTES, encode_entry
from seglog.storage.format.index_keys import record_keys
from seglog.storage.format.record import RecordRow, examine

_Stretches = defaultdict[str, list[tuple[int, int]]]
_NO_KEY: Final = ""


def erase_in_attic(
    files: Files, root: Path, segment_size_bytes: int, erased: Mapping[int, int], wanted: str = _NO_KEY
) -> int:
    """Zeroes what the attic of a store holds of erased records, durably; returns how many bytes.

    Args:
        files: Where the store is, of which the caller holds the lock.
        root: The store directory.
        segment_size_bytes: Length of a file of the log.
        erased: Sizes of the erased records by their places.
        wanted: The key whose messages are erased; empty for none.
    """
    stretches: _Stretches = defaultdict(list)
    places: set[ErasedPlace] = set()
    for one in records_in_attic(files, root, segment_size_bytes):
        if one.phy_offset in erased or (wanted and wanted in _keys(one.record, one.phy_offset)):
            stretches[one.attic_file].append((one.data_at, one.data_at + len(one.record)))
            places.update(_place(one))
    note_erased(files, root, places)
    zeroed = 0
    for kept in iter_kept(files, root):
        place = log_place(kept.name, kept.position_bytes)
        data = bytearray(kept.data)
        if place is not None:
            for start, size in erased.items():
                _zero(data, start - place, start - place + size)
        for start, end in stretches[kept.attic_file]:
            _zero(data, start - kept.data_at, end - kept.data_at)
        if data == kept.data:
            continue
        zeroed += sum(was != now for was, now in zip(kept.data, data, strict=True))
        at, entry = kept.data_at, bytes(data)
        if kept.name is not None:
            name = kept.name.encode("utf-8", "surrogateescape")
            at -= ATTIC_HEAD_BYTES + len(name)
            entry = encode_entry(name, kept.position_bytes, entry)
        with closing(files.open(root / kept.attic_file, writable=True)) as handle:
            handle.write_at(entry, at)
            handle.sync()
    return zeroed


def _place(kept: AtticRecord) -> Iterator[ErasedPlace]:
    row = examine(memoryview(kept.record), 0, kept.phy_offset)
    if isinstance(row, RecordRow):
        topic = row.topic.decode("utf-8", "replace")
        yield ErasedPlace(kept.phy_offset, row.size_bytes, topic, row.queue_id, row.queue_offset)


def _zero(data: bytearray, start: int, end: int) -> None:
    start, end = max(0, start), min(end, len(data))
    if start < end:
        data[start:end] = bytes(end - start)


def _keys(record: bytes, phy_offset: int) -> set[str]:
    row = examine(memoryview(record), 0, phy_offset)
    if not isinstance(row, RecordRow):
        return set()
    properties = record[row.properties_at : row.properties_at + row.properties_bytes]
    topic = row.topic.decode("utf-8", "replace")
    keys = record_keys(topic, properties, row.sys_flag, tags=False)
    return {key.partition("#")[2] if key.startswith(f"{topic}#") else key for key in keys}
