"""``seglog dump``: everything that a store serves, or would serve after recovery.

It uses the survey of the store, so it changes nothing: after a crash it shows the state that an opening would
recover. With ``--json`` the lines are those of :mod:`seglog.cli.read.java_lines`. Memory is bounded by the
survey's few dozen bytes for each message; bodies are read one window at a time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

import click
import numpy as np
import numpy.typing as npt

from seglog.cli.read import java_lines
from seglog.cli.read.reading import iter_records, log_as_stated, survey_store
from seglog.cli.ui import messages, options, pager, render
from seglog.errors import CorruptError
from seglog.storage.directory import LogReader
from seglog.storage.findings import Finding, findings_fields
from seglog.storage.format.layout import U32
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.format.queue import BATCH_UNIT_BYTES, CQ_UNIT_BYTES
from seglog.storage.format.ranges import ranges_of
from seglog.storage.format.record import MAGIC_AT, MAGIC_BLANK, Message, decode_message
from seglog.storage.overlay import BatchQueueState, QueueState, is_message
from seglog.storage.survey import Survey, start_now

_CHUNK_CHARS: Final = 1 << 16
_BATCH_ROWS: Final = 16384
_NORMAL: Final = frozenset(("log-spare", "queue-deleted"))


class HoleFound(NamedTuple):
    """Bytes of one commit-log file that should be records and cannot be served."""

    file: str
    position_bytes: int
    size_bytes: int
    why: str


class Served(NamedTuple):
    """A unit of a queue and the message that it leads to."""

    topic: str
    queue_id: int
    queue_offset: int
    tags_code: int
    message: Message
    batch_size: int = 1


class LostFound(NamedTuple):
    """Messages of a queue that are lost or repairable; their queue offsets are not used again."""

    topic: str
    queue_id: int
    queue_offset: int
    messages: int
    kind: str


@click.command
@options.store
@click.option("--log", "with_log", is_flag=True, help="Walk the log too: every record and filler in order.")
@click.option(
    "--no-verify", is_flag=True, help="Do not compute checksums; quicker, and blind for flipped bits."
)
@options.as_json
@pager.paged(stops=True)
def command(*, path: Path, with_log: bool, no_verify: bool, as_json: bool) -> None:
    """Print everything that STORE serves, queue by queue, as recovery would leave it.

    With --json the lines are those that a dump linked against RocketMQ prints: kinds store, queue and msg,
    log with --log, hole for bytes of the log that cannot be served, lost for messages whose queue offset
    was given but that are gone, repairable for those that a repair brings back, and finding for everything
    else that is wrong.
    """
    found = survey_store(path, verify=not no_verify)
    with closing(LogReader(log_as_stated(path), path, found.geometry.segment_size_bytes)) as reader:
        if as_json:
            _write(_json_lines(found, reader, with_log=with_log))
        else:
            _write(map(render.line_text, _text_lines(found, reader, with_log=with_log)))


def java_sorted(found: Survey) -> list[QueueState | BatchQueueState]:
    """Returns the queues of a store in RocketMQ's order: topics as Java sorts strings, then queue ids."""
    return sorted(
        [*found.queues.values(), *found.batch_queues.values()],
        key=lambda queue: (java_lines.java_order(queue.topic), queue.queue_id),
    )


def damage_of(found: Survey) -> list[Finding]:
    """Returns the findings about a store, without those that an undamaged store may have."""
    return [finding for finding in found.findings if finding.code not in _NORMAL]


def iter_holes(found: Survey) -> Iterator[HoleFound]:
    """Yields the unreadable stretches of the log, cut at the borders of its files."""
    segment = found.geometry.segment_size_bytes
    for hole in found.holes:
        at = hole.phy_offset
        while at < hole.end:
            end = min(hole.end, at - at % segment + segment)
            yield HoleFound(_log_file(at, segment), at % segment, end - at, hole.why)
            at = end


def iter_served(found: Survey, reader: LogReader) -> Iterator[Served | HoleFound | LostFound]:
    """Yields every message that every queue serves, by queue and queue offset, then its lost messages.

    A record that was damaged after the survey is yielded as a hole; a record that retention removed is left
    out.
    """
    for queue in java_sorted(found):
        units, offsets, sizes, lost = _served_units(queue, found)
        for start in range(0, len(units), _BATCH_ROWS):
            batch = slice(start, start + _BATCH_ROWS)
            codes = units["tags_code"][batch].tolist()
            columns = zip(
                _decode(units[batch], found, reader),
                offsets[batch].tolist(),
                codes,
                sizes[batch].tolist(),
                strict=True,
            )
            for place, offset, code, size in columns:
                if isinstance(place, HoleFound):
                    yield place
                elif place is None:
                    continue
                elif place[1].is_tombstone:
                    lost.append((offset, size))
                else:
                    yield Served(queue.topic, queue.queue_id, offset, code, place[1], size)
        back = found.repairable.get((queue.topic, queue.queue_id), frozenset())
        for kind, is_back in (("lost", False), ("repairable", True)):
            of_kind = sorted(one for one in lost if (one[0] in back) is is_back)
            for stretch in ranges_of(of_kind):
                yield LostFound(queue.topic, queue.queue_id, stretch.start, len(stretch), kind)


def _served_units(
    queue: QueueState | BatchQueueState, found: Survey
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.int64], npt.NDArray[np.int64], list[tuple[int, int]]]:
    """Returns the units of a queue that can be served, the queue offset of each, and their messages.

    Also returns queue offset and number of the messages that cannot be served, as far as units show them.
    """
    units: npt.NDArray[np.void] = queue.units
    if isinstance(queue, BatchQueueState):
        offsets, sizes = units["base_queue_offset"].astype(np.int64), units["batch_size"].astype(np.int64)
        there = offsets >= queue.min_offset
        chosen = there.copy()
    else:
        offsets = queue.first_slot + np.arange(len(units), dtype=np.int64)
        sizes = np.ones(len(units), np.int64)
        there = offsets >= queue.min_offset
        chosen = is_message(units) & there
    chosen &= ~_in_holes(units["phy_offset"], found) & (units["phy_offset"] < found.max_phy_offset)
    if found.withheld:
        chosen &= ~np.isin(units["phy_offset"], sorted(found.withheld))
    left = there & ~chosen
    lost = list(zip(offsets[left].tolist(), sizes[left].tolist(), strict=True))
    return units[chosen], offsets[chosen], sizes[chosen], lost


def iter_log(found: Survey, reader: LogReader) -> Iterator[tuple[int, int, Message] | HoleFound]:
    """Yields ``(magic, tags_code, message)`` for every record of the log in order, in a queue or not."""
    for start in range(0, len(found.rows), _BATCH_ROWS):
        rows = found.rows[start : start + _BATCH_ROWS]
        for place, code in zip(_decode(rows, found, reader), rows["tags_code"].tolist(), strict=True):
            if place is not None:
                yield place if isinstance(place, HoleFound) else (place[0], code, place[1])


def iter_fillers(found: Survey) -> Iterator[tuple[int, int]]:
    """Yields ``(phy_offset, size_bytes)`` of the fillers at the ends of segment files, in order."""
    segment = found.geometry.segment_size_bytes
    starts = found.rows["phy_offset"]
    ends = starts + found.rows["size_bytes"]
    after = {hole.phy_offset for hole in found.holes}
    ends_in_segment = ends % segment != 0
    next_starts = np.append(starts[1:], found.max_phy_offset)
    for index in np.flatnonzero((next_starts != ends) & ends_in_segment).tolist():
        end = int(ends[index])
        if end not in after:
            yield end, segment - end % segment


def _decode(
    places: npt.NDArray[np.void], found: Survey, reader: LogReader
) -> Iterator[tuple[int, Message] | HoleFound | None]:
    """Yields the record at each place; None for a record that retention removed since the survey."""
    segment = found.geometry.segment_size_bytes
    phy_offsets = places["phy_offset"]
    sizes = places["size_bytes"]
    records = iter_records(reader, phy_offsets, sizes, segment)
    for record, phy_offset, size in zip(records, phy_offsets.tolist(), sizes.tolist(), strict=True):
        try:
            message = decode_message(record)
        except CorruptError as error:
            if phy_offset < start_now(found, found.root, log_as_stated(found.root)):
                yield None
                continue
            yield HoleFound(_log_file(phy_offset, segment), phy_offset % segment, size, error.kind)
        else:
            yield U32.unpack_from(record, MAGIC_AT)[0], message


def _in_holes(phy_offsets: npt.NDArray[np.int64], found: Survey) -> npt.NDArray[np.bool_]:
    inside = np.zeros(len(phy_offsets), bool)
    for hole in found.holes:
        inside |= (phy_offsets >= hole.phy_offset) & (phy_offsets < hole.end)
    return inside


def _log_file(phy_offset: int, segment_size_bytes: int) -> str:
    return f"{COMMIT_LOG}/{segment_file_name(phy_offset - phy_offset % segment_size_bytes)}"


def _json_lines(found: Survey, reader: LogReader, *, with_log: bool) -> Iterator[str]:
    yield java_lines.store_line(found.min_phy_offset, found.max_phy_offset)
    for queue in java_sorted(found):
        yield java_lines.queue_line(
            queue.topic,
            queue.queue_id,
            queue.min_offset,
            queue.max_offset,
            queue.max_phy_offset,
            *_json_kind(queue),
        )
    for item in iter_served(found, reader):
        match item:
            case HoleFound():
                yield java_lines.hole_line(*item)
            case LostFound():
                yield java_lines.lost_line(*item)
            case Served():
                yield java_lines.message_line(*item)
    for hole in iter_holes(found):
        yield java_lines.hole_line(*hole)
    for fields in findings_fields([*damage_of(found)], found.findings):
        yield java_lines.finding_line(fields)
    if with_log:
        yield from _json_log_lines(found, reader)


def _json_kind(queue: QueueState | BatchQueueState) -> tuple[str, int]:
    """Returns the kind of a queue, and the position of its first message in its files, as RocketMQ does."""
    if isinstance(queue, BatchQueueState):
        before = int((queue.units["base_queue_offset"] < queue.min_offset).sum())
        return "BatchCQ", (queue.first_index + before) * BATCH_UNIT_BYTES
    return "SimpleCQ", queue.min_offset * CQ_UNIT_BYTES


def _json_log_lines(found: Survey, reader: LogReader) -> Iterator[str]:
    if not found.log_files:
        yield java_lines.walk_stop_line()
        return
    fillers = iter_fillers(found)
    filler = next(fillers, None)
    for item in iter_log(found, reader):
        if isinstance(item, HoleFound):
            yield java_lines.hole_line(*item)
            continue
        while filler is not None and filler[0] < item[2].phy_offset:
            yield java_lines.filler_line(*filler, MAGIC_BLANK)
            filler = next(fillers, None)
        yield java_lines.record_line(*item)
    if filler is not None:
        yield java_lines.filler_line(*filler, MAGIC_BLANK)


def _text_lines(found: Survey, reader: LogReader, *, with_log: bool) -> Iterator[str]:
    yield f"log {max(0, found.min_phy_offset)}..{found.max_phy_offset}, {found.mode} stop"
    for queue in java_sorted(found):
        count = render.count_text(queue.max_offset - queue.min_offset, "message")
        yield f"queue {queue.topic}/{queue.queue_id} {queue.min_offset}..{queue.max_offset}, {count}"
    for item in iter_served(found, reader):
        match item:
            case HoleFound():
                yield _text_of_hole(item)
            case LostFound():
                place = messages.place_text(item.topic, item.queue_id, item.queue_offset)
                yield f"{item.kind} {place}, {render.count_text(item.messages, 'message')}"
            case Served():
                place = messages.place_text(item.topic, item.queue_id, item.queue_offset)
                yield messages.message_text(item.message, place)
    for hole in iter_holes(found):
        yield _text_of_hole(hole)
    for finding in damage_of(found):
        yield f"finding {finding.severity.value} {finding}"
    if with_log:
        for record in iter_log(found, reader):
            if isinstance(record, HoleFound):
                yield _text_of_hole(record)
            else:
                message = record[2]
                yield f"log {message.phy_offset}  {messages.message_text(message)}"


def _text_of_hole(hole: HoleFound) -> str:
    return f"hole {hole.file} +{hole.position_bytes}, {render.size_text(hole.size_bytes)}: {hole.why}"


def _write(lines: Iterable[str]) -> None:
    """Writes lines in large pieces: a system call for each line would cost more than formatting the line."""
    pieces: list[str] = []
    held = 0
    for line in lines:
        pieces.append(line)
        held += len(line)
        if held >= _CHUNK_CHARS:
            sys.stdout.write("".join(pieces))
            pieces.clear()
            held = 0
    sys.stdout.write("".join(pieces))
