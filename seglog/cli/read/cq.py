"""``seglog cq``: shows the files of a queue."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import numpy as np

from seglog.cli.read.batch_queues import ListedBatchQueue, list_batch_queues
from seglog.cli.read.get import check_count, check_range
from seglog.cli.read.queue_slots import QueueSlots, Slot, Unit
from seglog.cli.read.reading import survey_store
from seglog.cli.ui import options, render
from seglog.cli.ui.lazy_group import CommandGroup
from seglog.errors import NotFoundError, OffsetRangeError
from seglog.storage.format.names import check_queue_id, check_topic
from seglog.storage.format.queue import BATCH_UNIT, BatchUnits
from seglog.storage.survey import Survey

_MARKS: Final = {
    "same": "",
    "differs": "DIFFERS",
    "only-file": "NOT IN LOG",
    "only-log": "NOT IN FILE",
    "empty": "empty",
}
_BATCH_NAMES: Final = {
    "phy_offset": "commitLogOffset",
    "size_bytes": "storeSize",
    "tags_code": "tagsCode",
    "store_timestamp_ms": "storeTimestamp",
    "base_queue_offset": "queueOffset",
    "batch_size": "messages",
}


@click.group(cls=CommandGroup)
def command() -> None:
    """Show the files of a queue, unit by unit."""


@command.command
@options.store
@click.argument("topic")
@click.argument("queue_id", metavar="QUEUE", type=int)
@click.option(
    "--offset", "queue_offset", type=int, help="Queue offset to start at.  [default: the first message]"
)
@click.option("--count", type=int, default=32, show_default=True, help="Units at most.")
@options.as_json
def show(
    *, path: Path, topic: str, queue_id: int, queue_offset: int | None, count: int, as_json: bool
) -> None:
    """Show the units of a queue of STORE: as stored, and as the log says.

    Where they differ the log's unit follows in a line of its own. The exit code is 1 if any of those shown
    do.
    """
    check_topic(topic)
    check_queue_id(queue_id)
    check_range("--offset", queue_offset or 0)
    check_count("--count", count)
    found = survey_store(path, verify=False)
    if (topic, queue_id) in found.queues:
        all_same = _show_plain(found, topic, queue_id, queue_offset, count, as_json=as_json)
    else:
        queue = next((queue for queue in list_batch_queues(found, topic) if queue.queue_id == queue_id), None)
        if queue is None:
            raise NotFoundError(f"the store has no queue {topic}/{queue_id}")
        all_same = _show_batch(queue, queue_offset or 0, count, as_json=as_json)
    if not all_same:
        raise click.exceptions.Exit(1)


def _show_plain(
    found: Survey, topic: str, queue_id: int, queue_offset: int | None, count: int, *, as_json: bool
) -> bool:
    slots = QueueSlots(found, topic, queue_id)
    state = found.queues[topic, queue_id]
    low, high = slots.range
    start = state.min_offset if queue_offset is None else queue_offset
    if queue_offset is None and start == state.max_offset:
        start = low  # there is no first message to start at, so all slots of the files are shown
    if queue_offset is not None and not low <= start < high:
        raise OffsetRangeError(
            f"queue {topic}/{queue_id} has slots {low}..{high - 1}, not {start}",
            min_offset=low,
            max_offset=high,
        )
    shown = list(slots.iter_slots(start, min(count, high - start)))
    # Slots after both the log's last unit and the last unit of the files have no information.
    while shown and shown[-1].state == "empty" and shown[-1].queue_offset >= state.max_offset:
        shown.pop()
    if as_json:
        for slot in shown:
            render.emit(_slot_fields(slot))
    else:
        render.table(
            ("offset", "file +position", "record at", "size", "tags code", "", "note"),
            [cells for slot in shown for cells in _slot_cells(slot)],
            numbers=("offset", "record at", "size", "tags code"),
        )
        wrong = sum(slot.state not in ("same", "empty") for slot in shown)
        render.say(
            f"{render.count_text(len(shown), 'unit')}, {render.count_text(wrong)} not as the log says"
            f" (the queue holds {state.min_offset}..{state.max_offset})"
        )
    return all(slot.state in ("same", "empty") for slot in shown)


def _slot_fields(slot: Slot) -> dict[str, object]:
    ext = slot.ext
    fields: dict[str, object] = {
        "kind": "unit",
        "queueOffset": slot.queue_offset,
        "file": slot.file,
        "pos": slot.position_bytes,
        "state": slot.state,
        "stored": _unit_fields(slot.stored),
        "log": _unit_fields(slot.in_log),
        "note": slot.note,
    }
    if ext is not None:
        fields["ext"] = {
            "file": ext.file,
            "address": ext.position_bytes,
            "tagsCode": ext.unit and ext.unit.tags_code,
            "storeTimestamp": ext.unit and ext.unit.store_timestamp_ms,
            "bitmap": ext.unit and ext.unit.bitmap.hex(),
        }
    return fields


def _unit_fields(unit: Unit | None) -> dict[str, int] | None:
    if unit is None:
        return None
    return {"commitLogOffset": unit.phy_offset, "storeSize": unit.size_bytes, "tagsCode": unit.tags_code}


def _slot_cells(slot: Slot) -> Iterator[tuple[str, ...]]:
    place = f"{slot.file.rpartition('/')[2]} +{slot.position_bytes}"
    yield (str(slot.queue_offset), place, *_values(slot.stored), _MARKS[slot.state], slot.note)
    if slot.state in ("differs", "only-log"):
        yield ("", "the log says", *_values(slot.in_log), "", "")


def _values(unit: Unit | None) -> tuple[str, str, str]:
    if unit is None:
        return "-", "-", "-"
    return str(unit.phy_offset), str(unit.size_bytes), str(unit.tags_code)


def _show_batch(queue: ListedBatchQueue, queue_offset: int, count: int, *, as_json: bool) -> bool:
    """Prints units of a batch queue, each beside the log's unit of the same base offset."""
    by_base = {int(unit["base_queue_offset"]): index for index, unit in enumerate(queue.state.units)}
    rows: list[tuple[str, dict[str, int] | None, dict[str, int] | None]] = []
    seen: set[int] = set()
    for position, unit in zip(queue.positions.tolist(), queue.stored, strict=True):
        base = int(unit["base_queue_offset"])
        seen.add(base)
        if _ends_behind(unit, queue_offset):
            rows.append((str(position), _batch_fields(unit), _at(queue.state.units, by_base.get(base))))
    for base, index in by_base.items():
        if base not in seen and _ends_behind(queue.state.units[index], queue_offset):
            rows.append(("-", None, _at(queue.state.units, index)))
    rows = sorted(rows, key=lambda row: (row[1] or row[2] or {})["queueOffset"])[:count]
    lines = []
    for position_text, stored, in_log in rows:
        state = "same" if stored == in_log else "differs"
        state = "only-file" if in_log is None else "only-log" if stored is None else state
        if as_json:
            place = None if stored is None else int(position_text)
            render.emit({"kind": "batch-unit", "pos": place, "state": state, "stored": stored, "log": in_log})
        shown = stored or in_log or {}
        lines.append((position_text, *(str(value) for value in shown.values()), _MARKS[state]))
    if not as_json:
        render.table(
            ("position", "record at", "size", "tags code", "stored", "base", "messages", ""),
            lines,
            numbers=("position", "record at", "size", "tags code", "stored", "base", "messages"),
        )
        render.say(f"{render.count_text(len(lines), 'unit')} of a batch queue")
    return all(stored == in_log for _position, stored, in_log in rows)


def _ends_behind(unit: np.void, queue_offset: int) -> bool:
    return int(unit["base_queue_offset"]) + int(unit["batch_size"]) > queue_offset


def _at(units: BatchUnits, index: int | None) -> dict[str, int] | None:
    return None if index is None else _batch_fields(units[index])


def _batch_fields(unit: np.void) -> dict[str, int]:
    return {
        _BATCH_NAMES[field.name]: int(unit[field.name])
        for field in BATCH_UNIT.fields
        if field.name in _BATCH_NAMES
    }
