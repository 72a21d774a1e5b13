"""``seglog index``: shows the key index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Final

import click

from seglog.cli.read.get import check_count
from seglog.cli.read.log_places import LogPlaces
from seglog.cli.read.reading import check_store
from seglog.cli.ui import options, render
from seglog.cli.ui.lazy_group import CommandGroup
from seglog.errors import CorruptError, InvalidArgumentError, NotFoundError
from seglog.storage.directory import IndexFile, list_index_files, load_index_file
from seglog.storage.files import Files, OpenFile, StoreRoot
from seglog.storage.format.index import (
    INDEX_ENTRY,
    INDEX_HEADER,
    INDEX_SLOT,
    IndexHeader,
    IndexView,
    decode_index_header,
    index_damage,
    key_hash,
    record_keys,
)
from seglog.storage.format.names import INDEX
from seglog.storage.format.record import decode_message

_SECOND_MS: Final = 1000


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of an index file.

    Attributes:
        number: Its number in the file, from 1.
        stored_ms: Store time of the record; its distance from the file's first record is in whole seconds.
    """

    number: int
    hashed: int
    phy_offset: int
    stored_ms: int
    previous: int


@click.group(cls=CommandGroup)
def command() -> None:
    """Show the key index."""


@command.command
@options.store
@click.argument("file", required=False)
@click.option(
    "--key", metavar="TOPIC#KEY", help="Follow the chain of this key, and say which entries are of it."
)
@click.option("--entries", "count", type=int, help="Show the last entries too, this many at most.")
@click.option("--verify", is_flag=True, help="Check every slot and chain; takes memory as large as the file.")
@options.as_json
def show(
    *, path: Path, file: str | None, key: str | None, count: int | None, verify: bool, as_json: bool
) -> None:
    """Show the index files of STORE: headers, division, damage; and entries of FILE, or of all files.

    Ends with 1 if a file is damaged; opening the store for writing makes it again from the log.
    """
    if count is not None:
        check_count("--entries", count)
    if key is not None and "#" not in key:
        raise InvalidArgumentError(f"--key {key!r} has no '#'", help="give TOPIC#KEY, such as orders#order-1")
    check_store(path)
    files = options.reading(path)
    sound, damaged = list_index_files(files, path)
    names = {item.path.name: item for item in sound}
    wanted = sorted([*names, *(item.name for item in damaged)])
    if file is not None:
        if Path(file).name not in wanted:
            raise NotFoundError(
                f"the store has no index file {file}", help="`seglog inspect index STORE` lists them"
            )
        wanted = [Path(file).name]
    is_whole = True
    for name in wanted:
        found = names.get(name)
        damage = _damage(files, found, verify=verify)
        is_whole &= not damage
        _show_file(files, path / INDEX / name, found, damage, as_json=as_json)
        if found is not None and key is not None:
            _show_chain(files, found, key, as_json=as_json)
        if found is not None and count is not None:
            _show_entries(files, found, count, as_json=as_json)
    if not wanted and not as_json:
        render.say("no index files: queries look through the log")
    if not is_whole:
        raise click.exceptions.Exit(1)


def _damage(files: Files, file: IndexFile | None, *, verify: bool) -> str:
    if file is None:
        return "no division into slots and entries explains the file"
    header = file.header
    values = astuple(header)
    if min(values) < 0:
        return f"index-header: expected numbers from 0, found {min(values)}"
    if header.hash_slot_count > min(file.geometry.slot_count, header.index_count - 1):
        return f"index-slot-count: {header.hash_slot_count} slots for {header.index_count - 1} entries"
    if not verify:
        return ""
    try:
        damage = index_damage(IndexView(load_index_file(files, file.path), file.geometry))
    except CorruptError as error:
        return str(error)
    return "" if damage is None else f"{damage.kind}: expected {damage.expected}, found {damage.found}"


def _show_file(files: Files, path: Path, file: IndexFile | None, damage: str, *, as_json: bool) -> None:
    header = file.header if file is not None else _raw_header(files, path)
    entries = max(0, header.index_count - 1)
    if as_json:
        render.emit(
            {
                "kind": "index-file",
                "file": f"{INDEX}/{path.name}",
                "beginTimestamp": header.begin_timestamp_ms,
                "endTimestamp": header.end_timestamp_ms,
                "beginPhyOffset": header.begin_phy_offset,
                "endPhyOffset": header.end_phy_offset,
                "hashSlotCount": header.hash_slot_count,
                "indexCount": header.index_count,
                "maxHashSlotNum": None if file is None else file.geometry.slot_count,
                "maxIndexNum": None if file is None else file.geometry.entry_count,
                "full": file is not None and file.is_full,
                "damage": damage or None,
            }
        )
        return
    division = "unknown"
    if file is not None:
        slots, most = (
            render.count_text(file.geometry.slot_count),
            render.count_text(file.geometry.entry_count),
        )
        division = f"{slots} slots, {most} entries" + (", full" if file.is_full else "")
    render.facts(
        {
            "file": f"{INDEX}/{path.name}",
            "stored": f"{render.time_text(header.begin_timestamp_ms)} … "
            f"{render.time_text(header.end_timestamp_ms)}",
            "records": f"{header.begin_phy_offset}..{header.end_phy_offset}",
            "holds": f"{render.count_text(entries, 'entry', 'entries')} in"
            f" {render.count_text(header.hash_slot_count, 'slot')}",
            "division": division,
            "damage": damage or "none seen",
        }
    )


def _raw_header(files: Files, path: Path) -> IndexHeader:
    with closing(files.open(path, writable=False)) as handle:
        return decode_index_header(bytes(_read(handle, 0, INDEX_HEADER.size_bytes)))


def _show_chain(files: StoreRoot, file: IndexFile, key: str, *, as_json: bool) -> None:
    hashed = key_hash(key)
    slot = hashed % file.geometry.slot_count
    places = LogPlaces(files.path)
    rows = []
    try:
        for entry in _iter_chain(files, file, slot):
            of_key = _verdict(places, entry, hashed, key)
            rows.append((*_cells(entry), of_key))
            if as_json:
                render.emit({**_fields(file, entry), "slot": slot, "keyIs": of_key})
    finally:
        places.close()
    if not as_json:
        shown = render.printable(key)
        render.say(
            f"key {shown}: hash {hashed}, slot {slot}, {render.count_text(len(rows), 'entry', 'entries')}"
        )
        if rows:
            _table(rows, "entry of")


def _verdict(places: LogPlaces, entry: Entry, hashed: int, key: str) -> str:
    """Returns whether an entry in the key's slot belongs to the key."""
    if entry.hashed != hashed:
        return "another key: other hash"
    try:
        message = decode_message(places.read_record(entry.phy_offset)) if entry.phy_offset >= 0 else None
    except CorruptError:
        message = None
    if message is None or message.phy_offset != entry.phy_offset:
        return "unknown: the record cannot be read"
    keys = record_keys(message.topic, message.properties_raw, message.sys_flag, tags=True)
    return "this key" if key in keys else "another key: same hash"


def _iter_chain(files: Files, file: IndexFile, slot: int) -> Iterator[Entry]:
    """Yields the entries of a slot, newest first; ends where a damaged chain stops leading backwards."""
    with closing(files.open(file.path, writable=False)) as handle:
        at = INDEX_HEADER.size_bytes + slot * INDEX_SLOT.size_bytes
        number = int(INDEX_SLOT.struct.unpack(_read(handle, at, INDEX_SLOT.size_bytes))[0])
        below = min(file.header.index_count, file.geometry.entry_count)
        while 0 < number < below:
            below = number
            entry = _entry(handle, file, number)
            yield entry
            number = entry.previous


def _show_entries(files: Files, file: IndexFile, count: int, *, as_json: bool) -> None:
    end = min(file.header.index_count, file.geometry.entry_count)
    rows = []
    with closing(files.open(file.path, writable=False)) as handle:
        for number in range(max(1, end - count), end):
            entry = _entry(handle, file, number)
            if as_json:
                render.emit(_fields(file, entry))
            else:
                rows.append((*_cells(entry), str(entry.hashed % file.geometry.slot_count)))
    if rows:
        _table(rows, "slot")


def _entry(handle: OpenFile, file: IndexFile, number: int) -> Entry:
    at = file.geometry.entries_at + INDEX_ENTRY.size_bytes * number
    hashed, phy_offset, diff_s, previous = INDEX_ENTRY.struct.unpack(
        _read(handle, at, INDEX_ENTRY.size_bytes)
    )
    # The time difference of entry 1 is relative to the end of the previous file, but its time is in the
    # header.
    stored_ms = file.header.begin_timestamp_ms + (_SECOND_MS * diff_s if number > 1 else 0)
    return Entry(number, hashed, phy_offset, stored_ms, previous)


def _read(handle: OpenFile, position: int, size_bytes: int) -> bytearray:
    """Returns bytes of a file; zeros after the file's end."""
    buffer = bytearray(size_bytes)
    handle.read_into(memoryview(buffer), position)
    return buffer


def _fields(file: IndexFile, entry: Entry) -> dict[str, object]:
    return {
        "kind": "index-entry",
        "file": f"{INDEX}/{file.path.name}",
        "entry": entry.number,
        "keyHash": entry.hashed,
        "commitLogOffset": entry.phy_offset,
        "storeTimestamp": entry.stored_ms,
        "previous": entry.previous,
    }


def _cells(entry: Entry) -> tuple[str, ...]:
    return (
        str(entry.number),
        str(entry.hashed),
        str(entry.phy_offset),
        render.time_text(entry.stored_ms),
        str(entry.previous),
    )


def _table(rows: list[tuple[str, ...]], last: str) -> None:
    columns = ("entry", "hash", "record at", "stored about", "previous", last)
    render.table(columns, rows, numbers=("entry", "hash", "record at", "previous"))
