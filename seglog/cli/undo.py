"""``seglog undo``: takes a repair back, so that every file is what it was before it, bit for bit."""

from __future__ import annotations

from pathlib import Path

import click

from seglog.cli import options, render
from seglog.cli.reading import check_store
from seglog.doctor.repair import locked
from seglog.doctor.undo import undo_repair
from seglog.doctor.undo_pack import UndoPack, list_packs, read_pack
from seglog.storage.files import RealFiles


@click.command
@options.store
@click.argument("number", type=int, required=False)
@click.option("--list", "is_list", is_flag=True, help="Show the repairs that can be taken back.")
@options.as_json
def command(*, path: Path, number: int | None, is_list: bool, as_json: bool) -> None:
    """Take repair NUMBER of STORE back, or the newest one.

    Every file becomes what it was before the repair. If the store was changed since, nothing is done. A
    repair that was stopped half-way is taken back as well; so is one that is half undone.
    """
    files = RealFiles()
    check_store(path)
    if is_list:
        for found in list_packs(files, path):
            _tell(read_pack(files, path, found), as_json=as_json)
        return
    with locked(files, path):
        pack = undo_repair(files, path, number)
    if as_json:
        render.emit(_fields(pack))
        return
    restored = len({*pack.old, *pack.kept, *pack.moved})
    render.say(
        f"repair {pack.number} is taken back: {render.count_text(restored, 'file')} as before,"
        f" {render.count_text(len(pack.created), 'new file')} removed"
    )


def _tell(pack: UndoPack, *, as_json: bool) -> None:
    if as_json:
        render.emit(_fields(pack))
        return
    state = "half undone" if pack.is_undoing else "stopped half-way" if pack.after is None else "finished"
    changed = len({*pack.old, *pack.kept, *pack.moved})
    render.say(
        f"{pack.number:3}  {render.time_text(pack.begun_ms)}  {state},"
        f" {render.count_text(changed, 'file')} changed, {len(pack.created)} new"
    )


def _fields(pack: UndoPack) -> dict[str, object]:
    return {
        "kind": "repair",
        "number": pack.number,
        "begun": pack.begun_ms,
        "finished": pack.after is not None,
        "undoing": pack.is_undoing,
        "changed": sorted({*pack.old, *pack.kept, *pack.moved}),
        "created": sorted(pack.created),
    }
