"""``seglog log``: shows records of the commit log."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Final

import click

from seglog.cli.read.get import check_range
from seglog.cli.read.log_places import LogPlaces, Near
from seglog.cli.read.record_fields import Anatomy, Part, dissect
from seglog.cli.ui import options, pager, render
from seglog.cli.ui.lazy_group import CommandGroup
from seglog.storage.format.record import FILLER, MAGIC_BLANK

_ROW_BYTES: Final = 16
_HEX_BYTES: Final = 512
"""Bytes of a long field that are shown; with ``--json`` all are printed."""
_TEXT_CHARS: Final = 60


@click.group(cls=CommandGroup)
def command() -> None:
    """Show records of the commit log, byte by byte."""


@command.command
@options.store
@click.option("--at", "phy_offset", metavar="PHY", type=int, required=True, help="Physical offset.")
@click.option("--hex", "with_hex", is_flag=True, help="Show the bytes of each field.")
@options.as_json
@pager.paged(stops=True)
def show(*, path: Path, phy_offset: int, with_hex: bool, as_json: bool) -> None:
    """Show what is at a place of the log of STORE, field by field.

    Ends with 1 if no sound record or filler starts there.
    """
    check_range("--at", phy_offset)
    with closing(LogPlaces(path)) as places:
        places.check(phy_offset)
        end = places.segment_end(phy_offset)
        anatomy = dissect(places.read_record(phy_offset), phy_offset, end)
        if anatomy is None or (anatomy.kind == "record" and anatomy.damage is not None):
            near = _nearness(places, phy_offset, is_record=anatomy is not None)
        else:
            near = {}
    place = {"phyOffset": phy_offset, "file": places.file_of(phy_offset)}
    position = phy_offset % places.segment_size_bytes
    if as_json:
        render.emit({**place, "pos": position, **_fields(anatomy, with_hex=with_hex), **near})
    else:
        render.say(f"{place['file']} +{position}: {_headline(anatomy, near)}")
        if anatomy is not None:
            _show(anatomy, with_hex=with_hex)
        _show_near(near)
    if anatomy is None or anatomy.damage is not None:
        raise click.exceptions.Exit(1)


def _nearness(places: LogPlaces, phy_offset: int, *, is_record: bool) -> dict[str, object]:
    """Returns what is at a place without an undamaged record, and the records before and after it."""
    before, after = places.before(phy_offset), places.after(phy_offset)
    return {
        "there": "a damaged record" if is_record else _what(places, phy_offset, before),
        "previous": _near_fields(before),
        "next": _near_fields(after),
    }


def _what(places: LogPlaces, phy_offset: int, before: Near | None) -> str:
    head = places.read(phy_offset, FILLER.size_bytes)
    if not head:
        return "the file is missing or ends before this place"
    if before is not None:
        end = before.phy_offset + before.size_bytes
        if end > phy_offset:
            return f"byte {phy_offset - before.phy_offset} of the record at {before.phy_offset}"
        filler = places.read(end, FILLER.size_bytes)
        is_filler = len(filler) == FILLER.size_bytes and FILLER.struct.unpack(filler)[1] == MAGIC_BLANK
        if is_filler and places.segment_end(end) == places.segment_end(phy_offset):
            return f"the rest of the file behind the filler at {end}"
    if places.is_unwritten(phy_offset):
        return "zeros to the end of the file: nothing was written here"
    return "zeros" if not any(head) else "bytes that are no record"


def _near_fields(near: Near | None) -> dict[str, int] | None:
    return None if near is None else {"phyOffset": near.phy_offset, "size": near.size_bytes}


def _fields(anatomy: Anatomy | None, *, with_hex: bool) -> dict[str, object]:
    if anatomy is None:
        return {"kind": "none", "sound": False}
    damage = anatomy.damage
    return {
        "kind": anatomy.kind,
        "sound": damage is None,
        "size": anatomy.size_bytes,
        "damage": None
        if damage is None
        else {"why": damage.kind, "expected": str(damage.expected), "found": str(damage.found)},
        "fields": [_part_fields(part, with_hex=with_hex) for part in anatomy.parts],
        "properties": [
            {"name": entry.name, "value": entry.value, "pos": entry.at, "size": entry.size_bytes}
            for entry in anatomy.properties
        ],
        "checks": [
            {"name": check.name, "right": check.holds, "detail": check.detail} for check in anatomy.checks
        ],
    }


def _part_fields(part: Part, *, with_hex: bool) -> dict[str, object]:
    fields: dict[str, object] = {
        "name": part.name,
        "pos": part.at,
        "size": len(part.raw),
        "value": part.value,
        "unit": part.unit,
        "meaning": part.meaning,
    }
    return {**fields, "hex": part.raw.hex()} if with_hex else fields


def _headline(anatomy: Anatomy | None, near: dict[str, object]) -> str:
    if anatomy is None:
        return f"no record starts here; {near['there']}"
    what = f"{anatomy.kind} of {render.count_text(anatomy.size_bytes, 'byte')}"
    damage = anatomy.damage
    if damage is None:
        return f"{what}, sound"
    return f"{what}, DAMAGED: {damage.kind}, expected {damage.expected}, found {damage.found}"


def _show(anatomy: Anatomy, *, with_hex: bool) -> None:
    columns: tuple[str, ...] = ("at", "bytes", "field", "value", "meaning")
    rows = [_cells(part) for part in anatomy.parts]
    if with_hex:
        columns = (*columns[:3], "hex", *columns[3:])
        rows = [
            (*cells[:3], _short_hex(part), *cells[3:])
            for cells, part in zip(rows, anatomy.parts, strict=True)
        ]
    render.table(columns, rows, numbers=("at", "bytes"))
    if with_hex:
        for part in anatomy.parts:
            if len(part.raw) > _ROW_BYTES:
                _dump(part)
    if anatomy.properties:
        render.say()
        render.table(
            ("at", "property", "value"),
            [
                (str(entry.at), render.printable(entry.name) or "(no entry)", render.printable(entry.value))
                for entry in anatomy.properties
            ],
            numbers=("at",),
        )
    if anatomy.checks:
        render.say()
        render.facts(
            {check.name: f"{'right' if check.holds else 'WRONG'}: {check.detail}" for check in anatomy.checks}
        )


def _cells(part: Part) -> tuple[str, ...]:
    value = render.printable(str(part.value))
    if len(value) > _TEXT_CHARS:
        value = value[: _TEXT_CHARS - 1] + "…"
    return str(part.at), str(len(part.raw)), part.name, value, part.meaning


def _short_hex(part: Part) -> str:
    return part.raw.hex(" ") if len(part.raw) <= _ROW_BYTES else "(below)"


def _dump(part: Part) -> None:
    render.say()
    render.say(f"{part.name}:")
    for start in range(0, min(len(part.raw), _HEX_BYTES), _ROW_BYTES):
        row = part.raw[start : start + _ROW_BYTES]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        render.say(f"  {part.at + start:>8}  {row.hex(' '):<{3 * _ROW_BYTES}} {text}")
    if len(part.raw) > _HEX_BYTES:
        render.say(f"  … and {render.count_text(len(part.raw) - _HEX_BYTES, 'byte')} more; --json prints all")


def _show_near(near: dict[str, object]) -> None:
    for name in ("previous", "next"):
        if name in near:
            found = near[name]
            text = f"{found['size']} bytes at {found['phyOffset']}" if isinstance(found, dict) else "none"
            render.say(f"{name} record: {text}")
