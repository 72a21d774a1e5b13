"""``seglog explain``: the history of one message as a tree, read from the files of the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from seglog.cli.read.get import check_count
from seglog.cli.ui import messages, options, pager, render
from seglog.cli.ui.lost_note import findings_of, saying_what_is_lost
from seglog.doctor.message import GroupState, Life, LogView, Role, Scan, Search, Stage, find_families, life_of
from seglog.doctor.tables import GroupOffset, OffsetTable
from seglog.errors import ConfigError
from seglog.storage.directory import RocksTable, find_rocksdb, not_read_text

_TITLES = {
    Role.MESSAGE: "message",
    Role.HALF: "half of a transaction",
    Role.COMMITTED: "committed message",
    Role.PREPARED: "prepared (3.x)",
    Role.ROLLED_BACK: "rolled back (3.x)",
    Role.DELAYED: "delay",
    Role.TIMER: "timer",
    Role.TIMER_CANCEL: "timer cancelled",
    Role.RETRY: "retry",
    Role.DEAD: "dead letter",
    Role.PARKED: "parked",
}


@click.command
@options.store
@click.argument("wanted", metavar="MSGID|KEY")
@click.option("--topic", help="Where to look for a key.  [default: every topic]")
@click.option(
    "--count", type=int, default=3, show_default=True, help="Messages at most, the newest of a key."
)
@click.option(
    "--scan/--no-scan",
    "scan",
    default=None,
    help="Walk all of the log, or none of it.  [default: what the index does not cover]",
)
@options.as_json
@pager.paged()
def command(
    *, path: Path, wanted: str, topic: str | None, count: int, scan: bool | None, as_json: bool
) -> None:
    """Show the history of a message of STORE: where it was sent and stored, and what became of it.

    MSGID is a message id or a unique key. Ends with 13 if there is no such message.
    """
    check_count("--count", count)
    files = options.reading(path)
    with LogView(files, path) as view:
        offsets, why = read_offsets(path)
        with (
            saying_what_is_lost(path, lambda: findings_of(path)),
            render.progress("scanning the log") as tell,
        ):
            found = find_families(
                view, wanted, topic=topic, scan=scan_choice(scan), limit=count + 1, progress=tell
            )
        shown = found.families[-count:]
        if why:
            found.search.not_looked.append(why)
        lives = [life_of(view, family, found.search, offsets) for family in shown]
    if as_json:
        for number, life in enumerate(lives):
            for stage in life.stages:
                render.emit(_stage_fields(stage, number))
        render.emit(search_fields(found.search))
        return
    if len(found.families) > count:
        render.say(f"several messages have this key; the newest {render.count_text(count)} follow (--count)")
        render.say()
    for life in lives:
        _show(life)
        render.say()
    show_search(found.search)


def scan_choice(scan: bool | None) -> Scan:
    """Returns the scan that ``--scan``, ``--no-scan`` or neither of them selects."""
    return Scan.WHERE_NEEDED if scan is None else Scan.ALWAYS if scan else Scan.NEVER


def read_offsets(path: Path) -> tuple[list[GroupOffset], str]:
    """Returns the offsets of the groups, and the reason if they cannot be read."""
    files = options.reading(path)
    if text := not_read_text(find_rocksdb(files, path), RocksTable.OFFSETS):
        return [], f"not looked at: {text}"
    try:
        return OffsetTable(files, path).all(), ""
    except ConfigError as error:
        return [], str(error)


def _show(life: Life) -> None:
    first = life.stages[0].message
    name = first.unique_key or first.message_id
    render.say(render.Styled(name))
    roots = life.children(None)
    for number, stage in enumerate(roots):
        _show_branch(life, stage, "", is_last=number == len(roots) - 1)


def _show_branch(life: Life, stage: Stage, indent: str, *, is_last: bool) -> None:
    children = life.children(stage.message.phy_offset)
    below = indent + ("   " if is_last else "│  ")
    render.say(f"{indent}{'└─' if is_last else '├─'} ", _headline(stage))
    bar = "│  " if children else "   "
    for line in _details(stage):
        render.say(f"{below}{bar}", line)
    for number, child in enumerate(children):
        _show_branch(life, child, below, is_last=number == len(children) - 1)


def _headline(stage: Stage) -> str:
    message = stage.message
    title = _TITLES[stage.role]
    if stage.role in (Role.RETRY, Role.DEAD, Role.PARKED):
        title += f" of {render.printable(stage.group or '?')}"
    if message.reconsume_times:
        title += f", after {render.count_text(message.reconsume_times, 'failure')}"
    place = messages.place_text(message.topic, message.queue_id, message.queue_offset)
    return f"{title}: {place}, stored {render.time_text(message.store_timestamp_ms)}"


def _details(stage: Stage) -> Iterator[str]:
    message = stage.message
    if stage.parent is None:
        yield f"born {render.time_text(message.born_timestamp_ms)} at {message.born_host}"
        keys = render.printable(" ".join(message.keys) or "-")
        size = render.count_text(len(message.body), "byte")
        yield f"tag {render.printable(message.tags or '-')}, keys {keys}, body of {size}"
    crc = f"body CRC {stage.body_crc:#010x}" + (" and record CRC" if stage.has_record_crc else "")
    yield (
        f"{render.count_text(message.size_bytes, 'byte')} at {message.phy_offset}"
        f" ({stage.file} +{stage.position_bytes}), {crc} right"
    )
    yield f"id {message.message_id}, {_index_text(stage)}"
    yield _unit_text(stage)
    if stage.is_erased:
        yield "body erased"
    if stage.wait is not None:
        yield _wait_text(stage)
    if stage.groups:
        yield "groups: " + ", ".join(_group_text(group) for group in stage.groups)
    elif stage.role in (Role.MESSAGE, Role.COMMITTED, Role.RETRY, Role.DEAD, Role.PARKED):
        yield "groups: none has an offset here"


def _index_text(stage: Stage) -> str:
    if not stage.index:
        return "not in the index"
    unique = stage.message.unique_key
    keys = (
        f"tag {render.printable(entry.key)}"
        if entry.is_tag
        else "the unique key"
        if entry.key == unique
        else render.printable(entry.key)
        for entry in stage.index
    )
    return f"in the index by {', '.join(dict.fromkeys(keys))}"


def _unit_text(stage: Stage) -> str:
    unit = stage.unit
    if unit is None:
        return "no queue unit of its own"
    state = {"right": "", "other": ", which leads elsewhere", "none": ", where nothing is"}[unit.state]
    return f"queue unit at {unit.file} +{unit.position_bytes}{state}"


def _wait_text(stage: Stage) -> str:
    assert stage.wait is not None
    wait = stage.wait
    if stage.role is not Role.HALF:
        states = {
            "delivered": "delivered",
            "cancelled": "cancelled",
            "waiting": "waits",
            "passed": "its turn came, but no delivered copy was found",
        }
        return f"due {render.time_text(wait.due_ms)}: {states[wait.state]}"
    states = {
        "checked": "the producer was asked, and it was put back",
        "committed": "committed",
        "rolled-back": "done without a committed message: rolled back",
        "pending": "pending: neither committed nor rolled back",
    }
    return states[wait.state] + (
        "" if wait.op_phy_offset is None else f" (op record at {wait.op_phy_offset})"
    )


def _group_text(group: GroupState) -> str:
    kind = " (broadcast)" if group.is_broadcast else ""
    state = "passed" if group.has_passed else "not yet"
    return f"{render.printable(group.group)}{kind} {state} (next {group.next_offset})"


def show_search(search: Search) -> None:
    """Prints how messages were searched for, and what was not searched."""
    ways = ["the index"] if search.by_index else []
    records = sum(scanned.records for scanned in search.scanned)
    if search.scanned:
        size = sum(scanned.end - scanned.start for scanned in search.scanned)
        ways.append(f"a scan of {render.count_text(records, 'record')} ({render.size_text(size)} of the log)")
    render.say(f"looked for by {' and '.join(ways) or 'message id only'}")
    if search.mentions:
        count = render.count_text(len(search.mentions), "other record")
        render.say(f"the key or an id also occurs in {count}, in bodies or other properties")
    for text in dict.fromkeys(search.not_looked):
        render.say(f"not looked at: {render.printable(text)}")


def search_fields(search: Search) -> dict[str, object]:
    """Returns the fields for programs about how messages were searched for."""
    return {
        "kind": "search",
        "byIndex": search.by_index,
        "scanned": [{"from": one.start, "to": one.end, "records": one.records} for one in search.scanned],
        "mentions": [message.phy_offset for message in search.mentions],
        "notLookedAt": list(dict.fromkeys(search.not_looked)),
    }


def _stage_fields(stage: Stage, number: int) -> dict[str, object]:
    message = stage.message
    fields = {
        name: value for name, value in messages.message_fields(message, "text").items() if name != "kind"
    }
    unit, wait = stage.unit, stage.wait
    return {
        "kind": "stage",
        "message": number,
        "role": stage.role.value,
        "parent": stage.parent,
        "group": stage.group,
        "file": stage.file,
        "pos": stage.position_bytes,
        "bodyCRC": stage.body_crc,
        "recordCRC": stage.has_record_crc,
        "unit": None
        if unit is None
        else {"file": unit.file, "pos": unit.position_bytes, "state": unit.state},
        "index": [{"file": one.file, "key": one.key, "isTag": one.is_tag} for one in stage.index],
        "groups": [
            {
                "group": one.group,
                "nextOffset": one.next_offset,
                "passed": one.has_passed,
                "broadcast": one.is_broadcast,
            }
            for one in stage.groups
        ],
        "wait": None
        if wait is None
        else {"state": wait.state, "due": wait.due_ms, "opCommitLogOffset": wait.op_phy_offset},
        "erased": stage.is_erased,
        **fields,
    }
