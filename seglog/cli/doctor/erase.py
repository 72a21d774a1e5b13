"""``seglog erase``: erases the body of a message and all its copies, and writes a certificate."""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from pathlib import Path
from typing import Final

import click

from seglog.cli.ui import changing, messages, options, render
from seglog.cli.ui.confirm import is_typed
from seglog.cli.ui.version import package_version
from seglog.clock import SystemClock
from seglog.doctor.erase import (
    Erased,
    ErasedCopy,
    ErasePlan,
    apply_erase,
    certificate,
    copy_fields,
    finish_erase,
    is_complete,
    not_looked_at,
    plan_erase,
)
from seglog.doctor.message import Scan
from seglog.errors import InvalidArgumentError
from seglog.storage.files import check_outside, new_file_outside
from seglog.storage.format.names import OURS

_ERASED: Final = "these bodies are empty or zeros already"


@click.command
@options.store
@click.argument("wanted", metavar="MSGID|KEY")
@click.option("--topic", help="Where to look for a key.  [default: every topic]")
@click.option(
    "--certificate",
    "target",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File of the certificate.  [default: STORE/seglog/erased/TIME.json]",
)
@click.option("--no-scan", is_flag=True, help="Erase only what the index finds; the certificate says so.")
@changing.asking
@options.as_json
def command(
    *,
    path: Path,
    wanted: str,
    topic: str | None,
    target: Path | None,
    no_scan: bool,
    is_applied: bool,
    is_sure: bool,
    as_json: bool,
) -> None:
    """Erase the bodies of a message of STORE and all its copies; of a KEY, of all messages that have it.

    Retry, dead, half, delayed and parked copies are found by one scan. Sizes and offsets stay, and a broker
    still reads the store. THERE IS NO WAY BACK, not even by an undo. Ends with 1 if bytes of a body are left
    anywhere in the store, or if something could not be looked at.
    """
    files = options.writing(path) if is_applied else options.reading(path)
    if target is not None:
        check_outside(files, target)
        if os.path.lexists(target):
            raise InvalidArgumentError(f"{target} exists already", help="name a new file for the certificate")
    if is_applied:
        finished = finish_erase(files, path)
        if finished and not as_json:
            render.say(f"finished an erase that was interrupted: {render.count_text(finished, 'record')}")
    with render.progress("scanning the log") as tell:
        scan = Scan.NEVER if no_scan else Scan.ALWAYS
        plan = plan_erase(files, path, wanted, topic=topic, scan=scan, progress=tell)
    if not is_applied:
        _show_plan(plan, as_json=as_json)
        changing.end_preview(as_json=as_json, is_needed=bool(plan.left), asks=True)
        return
    if not is_sure:
        _show_plan(plan, as_json=False)
        _confirm(path)
    with nullcontext() if target is None else new_file_outside(files, target) as opened:
        done = apply_erase(files, plan, SystemClock())
        paper = certificate(done, package_version("seglog") or "unknown")
        text = (json.dumps(paper, indent=1) + "\n").encode()
        if opened is not None:
            opened.write(text)
    file = target or path / OURS / "erased" / f"{done.done_ms}.json"
    if target is None:
        files.make_dirs(file.parent)
        files.write_file(file, text)
    if as_json:
        render.emit(paper)
    else:
        _show_done(done, file)
    if not is_complete(done):
        raise click.exceptions.Exit(1)


def _confirm(path: Path) -> None:
    name = path.absolute().name
    if not is_typed(f'There is no way back. Type the store\'s name, "{name}", to erase', name):
        raise InvalidArgumentError("nothing was erased: that is not the store's name")


def _show_plan(plan: ErasePlan, *, as_json: bool) -> None:
    if as_json:
        for copy in plan.copies:
            render.emit({"kind": "copy", **copy_fields(copy)})
        return
    render.table(
        ("record", "topic", "offset", "file", "position", "bytes", "mark"),
        [
            (
                copy.role,
                f"{render.printable(copy.message.topic)}/{copy.message.queue_id}",
                str(copy.message.queue_offset),
                f"{copy.store}/{copy.file}".lstrip("/"),
                str(copy.position_bytes),
                str(len(copy.message.body)),
                _mark_text(copy),
            )
            for copy in plan.copies
        ],
        numbers=("offset", "position", "bytes"),
    )
    if not plan.left:
        render.say(
            f"nothing is left to erase: {_ERASED}; --apply would search the store for bytes of them once more"
        )
    for search in plan.searches.values():
        for message in search.mentions:
            place = messages.place_text(message.topic, message.queue_id, message.queue_offset)
            render.say(f"not erased, though the key or an id occurs in it: {place}")


def _mark_text(copy: ErasedCopy) -> str:
    if copy.is_erased:
        return "erased already"
    return "fits" if copy.is_marked else "does not fit"


def _show_done(done: Erased, file: Path) -> None:
    leftovers = done.leftovers
    found = render.count_text(len(leftovers.found), "place")
    searched = f"{render.size_text(leftovers.searched_bytes)} of all files searched"
    if not leftovers.bodies:
        searched = "they were zeros already, and nothing else of them was kept"
    left = f"in {found}" if leftovers.found else f"nowhere in the store ({searched})"
    if leftovers.too_short:
        short = render.count_text(leftovers.too_short, "body", "bodies")
        left = f"not known: {short} too short to be searched for" + ("; " + left) * bool(leftovers.bodies)
    copies, new = done.plan.copies, done.plan.left
    unmarked = sum(not copy.is_marked for copy in new)
    erased = render.count_text(len(new), "record") if new else f"nothing was left to erase: {_ERASED}"
    if unmarked:
        erased += f", {unmarked} without room for SEGLOG_ERASED"
    if new and len(new) < len(copies):
        erased += f"; {render.count_text(len(copies) - len(new))} more were erased already"
    packs = [f"{store}/{pack}".lstrip("/") for store, one in done.packs.items() for pack in one.zeroed]
    undo = {"undo packs": f"erased in {', '.join(packs)}; undo takes them back no more"} if packs else {}
    render.facts(
        {
            "erased": erased,
            "sealed again": render.count_text(len(done.sealed), "segment"),
            **undo,
            "bodies left": left,
            "certificate": str(file),
        }
    )
    for one in leftovers.found:
        render.say(f"still there: {one.file} +{one.position_bytes}")
    for text in not_looked_at(done):
        render.say(f"not looked at: {render.printable(text)}")
