"""Restores records that an earlier opening replaced by tombstones and that the attic still has.

Bytes of the attic are restored only if a tombstone of ours replaces exactly that record: at the physical
offset in the record itself, with its length, topic, queue and queue offset; or into a hole of the log for
which ``seglog/holes`` lists that message as lost, because the tombstone was destroyed too. The record must
also prove itself: by its checksums, or by a certain mend of one flipped bit or an overwritten head, with the
tombstone in the role of the queue unit. So no record of an earlier log is restored, none behind the end of
the log, and none that was erased: the attic has only zeros of those, and for an attic from before the erase
:mod:`~seglog.storage.small_files.erased_places` names the record.

A record in the attic at another place than that in its own field, such as under the name of another file, is
found by its magic; so are records of log files that a repair moved aside because they were copies of others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from seglog.storage.certain_mends.mend import ATTIC_KIND, Mend
from seglog.storage.directory.log_files import LogReader
from seglog.storage.files.files import Files
from seglog.storage.format.layout import I64
from seglog.storage.format.names import COMMIT_LOG, STRAY, parse_segment_file_name
from seglog.storage.format.ours.attic_entry import MAX_KEPT_BYTES
from seglog.storage.format.record.flipped_bit import flipped, has_crc_property, mend_record, structure_bits
from seglog.storage.format.record.record import (
    FILLER,
    FILLER_BYTES,
    MAGIC_AT,
    MAGIC_BLANK,
    MIN_RECORD_BYTES,
    PHY_OFFSET_AT,
    RECORD_MAGIC,
    Damage,
    RecordRow,
    examine,
)
from seglog.storage.format.record.self_evident_fields import restate
from seglog.storage.format.record.tombstone import is_tombstone
from seglog.storage.kernels.walk import iter_resync
from seglog.storage.scan.holes_file import KnownHole, load_holes
from seglog.storage.small_files.attic import iter_kept
from seglog.storage.small_files.erased_places import ErasedPlace, erased_places
from seglog.storage.walk.behind_damage import Hole

_MAX_RECORD_BYTES: Final = 5 << 20
"""Longer records are not searched for, as no broker accepts them."""
_ATTIC: Final = "the attic"
_COPY: Final = f"a copy in {STRAY}"


class _Stretch(NamedTuple):
    """A stretch of the log that the attic has, without its bytes."""

    attic_file: str
    data_at: int
    phy_offset: int
    size_bytes: int

    @property
    def end(self) -> int:
        return self.phy_offset + self.size_bytes


class _Copy(NamedTuple):
    """A whole record at another place than its own.

    Attributes:
        phy_offset: Its own place.
        record: Its bytes.
        proof: Where it is.
        is_followed: Whether the next record of the log follows it there.
    """

    phy_offset: int
    record: bytes
    proof: str
    is_followed: bool


def mends_from_attic(
    files: Files, root: Path, segment_size_bytes: int, end_phy_offset: int, holes: Sequence[Hole] = ()
) -> list[Mend]:
    """Returns the mends that attic and copies prove, in log order; reads no record if there are neither.

    Args:
        files: The file layer of the store.
        root: The store directory.
        segment_size_bytes: Length of a file of the log.
        end_phy_offset: End of the log.
        holes: Its unreadable stretches.
    """
    stretches = _stretches(files, root, segment_size_bytes)
    known = load_holes(files, root)
    copies = _copies_aside(files, root) if known else []
    if not stretches and not copies:
        return []
    reader = LogReader(files, root, segment_size_bytes)
    found: dict[int, Mend] = {}

    followed: set[int] = set()

    def take_up(records: Iterable[_Copy]) -> None:
        known_before = set(found)
        for place, record, where, is_followed in records:
            if place in known_before or place + len(record) > end_phy_offset:
                continue
            # Of several copies the first that its follower in the log comes after: a piece of a record at a
            # wrong place has other bytes for its properties, which no checksum covers.
            if place in found and (place in followed or not is_followed):
                continue
            mend = _mend_of(bytes(reader.read(place, len(record))), record, place, known, holes)
            if mend is not None:
                found[place] = replace(mend, proof=where)
                if is_followed:
                    followed.add(place)

    with closing(reader):
        # Copies at other places were not damaged together with this place; so these count even if no checksum
        # covers their properties.
        take_up(_of_copies(files, copies, segment_size_bytes))
        take_up(_of_attic(files, root, segment_size_bytes, in_place=False))
        for stretch in stretches:
            for place, stone in _stones(reader, stretch, segment_size_bytes, end_phy_offset):
                if place not in found:
                    window = _window(files, root, stretches, stretch, place, len(stone))
                    if (mend := _fitting(stone, window, place)) is not None:
                        found[place] = mend
        take_up(_of_attic(files, root, segment_size_bytes, in_place=True))
    gone = erased_places(files, root) if found else set()
    return [found[place] for place in sorted(found) if not is_erased(found[place], gone)]


def is_erased(mend: Mend, gone: Collection[ErasedPlace]) -> bool:
    """Returns whether a mend would bring back a record that is among erased ones."""
    topic = mend.topic.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return ErasedPlace(mend.phy_offset, len(mend.after), topic, mend.queue_id, mend.queue_offset) in gone


def _of_attic(files: Files, root: Path, segment_size_bytes: int, *, in_place: bool) -> Iterator[_Copy]:
    """Yields the whole records in the attic, at their own places or at other ones, newest first."""
    for kept in iter_kept(files, root):
        first = log_place(kept.name, kept.position_bytes)
        if first is not None:
            for at, place, record, is_followed in whole_records(kept.data, segment_size_bytes):
                if (first + at == place) is in_place:
                    yield _Copy(place, record, _ATTIC, is_followed=is_followed)


def _of_copies(files: Files, copies: Sequence[Path], segment_size_bytes: int) -> Iterator[_Copy]:
    for path in copies:
        for data in _iter_parts(files, path):
            for _at, place, record, is_followed in whole_records(data, segment_size_bytes):
                yield _Copy(place, record, _COPY, is_followed=is_followed)


def whole_records(data: bytes, segment_size_bytes: int) -> Iterator[tuple[int, int, bytes, bool]]:
    """Yields the whole records in some bytes.

    Each with its position, the physical offset that it states, its bytes, and whether the next record of the
    log follows it in these bytes. A record whose first sector stands at a wrong place may have bytes of
    others behind that for its properties, which no checksum covers: then nothing begins where it ends.
    """
    view = memoryview(data)
    for match in RECORD_MAGIC.finditer(data, MAGIC_AT):
        at = match.start() - MAGIC_AT
        if len(view) - at < MIN_RECORD_BYTES:
            break
        stated = int(I64.unpack_from(view, at + PHY_OFFSET_AT)[0])
        row = examine(view, at, stated) if stated >= 0 else None
        if isinstance(row, RecordRow) and stated % segment_size_bytes + row.size_bytes <= segment_size_bytes:
            end = at + row.size_bytes
            record = bytes(view[at:end])
            is_record = RECORD_MAGIC.match(data, end + MAGIC_AT) is not None
            is_head = is_record and end + PHY_OFFSET_AT + I64.size <= len(data)
            is_followed = is_head and I64.unpack_from(data, end + PHY_OFFSET_AT)[0] == stated + row.size_bytes
            if is_record or _is_empty_at(data, end) or has_crc_property(record):
                yield at, stated, record, is_followed


def _is_empty_at(data: bytes, end: int) -> bool:
    """Returns whether some bytes end at a place, or have zeros or a filler there."""
    head = data[end : end + FILLER_BYTES]
    return not any(head) or (len(head) == FILLER_BYTES and FILLER.struct.unpack(head)[1] == MAGIC_BLANK)


def _copies_aside(files: Files, root: Path) -> list[Path]:
    """Returns the log files that a repair moved aside because their records belong to another file."""
    folder = root / STRAY / COMMIT_LOG
    return [
        folder / entry.name
        for entry in files.list_dir(folder)
        if not entry.is_dir and parse_segment_file_name(entry.name.partition(".")[0]) is not None
    ]


def _iter_parts(files: Files, path: Path) -> Iterator[bytes]:
    """Yields a file in parts that overlap by the longest record; skips holes."""
    with closing(files.open(path, writable=False)) as handle:
        at = handle.next_data(0)
        while at is not None:
            yield _read(files, path, at, MAX_KEPT_BYTES + _MAX_RECORD_BYTES)
            at = handle.next_data(at + MAX_KEPT_BYTES)


def _stretches(files: Files, root: Path, segment_size_bytes: int) -> list[_Stretch]:
    """Returns the stretches of the log that the attic has, newest first; adjacent ones are joined."""
    found: list[_Stretch] = []
    for kept in iter_kept(files, root):
        place = log_place(kept.name, kept.position_bytes)
        if place is not None and place % segment_size_bytes + len(kept.data) <= segment_size_bytes:
            found.append(_Stretch(kept.attic_file, kept.data_at, place, len(kept.data)))
    return found


def log_place(name: str | None, position_bytes: int) -> int | None:
    """Returns the physical offset of kept bytes; None for bytes of other files.

    Args:
        name: Their file, as in :class:`~seglog.storage.small_files.attic.Kept`.
        position_bytes: Their position in that file.
    """
    if name is None:
        return position_bytes
    folder, _, file = name.rpartition("/")
    first = parse_segment_file_name(file) if folder == COMMIT_LOG else None
    return None if first is None else first + position_bytes


def _stones(
    reader: LogReader, stretch: _Stretch, segment: int, end_phy_offset: int
) -> Iterator[tuple[int, bytes]]:
    """Yields place and bytes of the tombstones that begin in a stretch of the log."""
    end = min(stretch.end, end_phy_offset)
    room = stretch.phy_offset - stretch.phy_offset % segment + segment - stretch.phy_offset
    if end <= stretch.phy_offset:
        return
    view = reader.read(stretch.phy_offset, min(room, stretch.size_bytes + _MAX_RECORD_BYTES))
    for at in iter_resync(view, stretch.phy_offset, 0):
        place = stretch.phy_offset + at
        if place >= end:
            return
        row = examine(view, at, place, verify=False)
        if isinstance(row, RecordRow):
            stone = bytes(view[at : at + row.size_bytes])
            if _is_stone(stone, place):
                yield place, stone


def _is_stone(record: bytes, place: int) -> bool:
    view = memoryview(record)
    row = examine(view, 0, place)
    whole = isinstance(row, RecordRow) and row.size_bytes == len(record)
    return whole and is_tombstone(view)


def _window(
    files: Files, root: Path, stretches: list[_Stretch], first: _Stretch, place: int, size_bytes: int
) -> bytes:
    """Returns the bytes of a place in one file of the attic; empty if some of them are missing."""
    own = {one.phy_offset: one for one in stretches if one.attic_file == first.attic_file}
    parts: list[bytes] = []
    at, stretch = place, first
    while at < place + size_bytes:
        size = min(stretch.end, place + size_bytes) - at
        parts.append(_read(files, root / stretch.attic_file, stretch.data_at + at - stretch.phy_offset, size))
        at += size
        following = own.get(at)
        if at < place + size_bytes and following is None:
            return b""
        stretch = following or stretch
    return b"".join(parts)


def _read(files: Files, path: Path, position_bytes: int, size_bytes: int) -> bytes:
    with closing(files.open(path, writable=False)) as handle:
        buffer = memoryview(bytearray(size_bytes))
        return bytes(buffer[: handle.read_into(buffer, position_bytes)])


def _mend_of(
    there: bytes, record: bytes, place: int, known: Sequence[KnownHole], holes: Sequence[Hole]
) -> Mend | None:
    """Returns the mend that writes a whole record over what is at its place; None if it does not fit."""
    if _is_stone(there, place):
        return _fitting(there, record, place)
    if len(there) == len(record) and any(covers(hole, place, len(record)) for hole in holes):
        return _noted(known, there, record, place)
    return None


def _fitting(stone: bytes, window: bytes, place: int) -> Mend | None:
    """Returns the mend that replaces a tombstone by its record; None if the record is not proven."""
    wanted = examine(memoryview(stone), 0, place)
    if isinstance(wanted, Damage) or len(window) != len(stone) or not any(window):
        return None
    for record in _candidates(window, place):
        row = examine(memoryview(record), 0, place)
        if isinstance(row, Damage) or is_tombstone(memoryview(record)):
            continue
        same = (row.size_bytes, row.topic, row.queue_id, row.queue_offset) == (
            len(stone),
            wanted.topic,
            wanted.queue_id,
            wanted.queue_offset,
        )
        if same:
            topic = row.topic.decode("utf-8", "surrogateescape")
            return Mend(ATTIC_KIND, place, stone, record, topic, row.queue_id, row.queue_offset, _ATTIC)
    return None


def _noted(known: Sequence[KnownHole], there: bytes, record: bytes, place: int) -> Mend | None:
    """Returns the mend that writes a record into a hole; None unless it was noted as lost at that place."""
    row = examine(memoryview(record), 0, place)
    if isinstance(row, Damage) or is_tombstone(memoryview(record)):
        return None
    key = row.topic.decode("utf-8", "surrogateescape"), row.queue_id
    lost = (one for hole in known if covers(hole, place, len(record)) for one in hole.lost)
    if any((one.topic, one.queue_id) == key and row.queue_offset in one.offsets for one in lost):
        return Mend(ATTIC_KIND, place, there, record, *key, row.queue_offset, _ATTIC)
    return None


def covers(hole: Hole | KnownHole, place: int, size_bytes: int) -> bool:
    """Returns whether a stretch of the log is in a hole, all of it."""
    return hole.phy_offset <= place and place + size_bytes <= hole.end


def _candidates(window: bytes, place: int) -> Iterator[bytes]:
    yield window
    bit = mend_record(window, place)
    if bit is not None:
        yield flipped(window, bit)
    structure = structure_bits(window, place)
    if len(structure) == 1:
        yield flipped(window, structure[0])
    made = restate(window, place)
    if made is not None:
        yield made
