"""ConsumeQueueExt: repairs files with which RocketMQ would not start, and units whose filter data is gone.

Filter data is derived: the hash of the tag follows from the record, and a unit that holds the hash needs no
filter data. A file gets its place and length back; its contents are not rebuilt.
Source: ``store/.../ConsumeQueueExt.java recover, truncateByMaxAddress``, ``ConsumeQueue.java getExt``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from seglog.doctor.parts.ext_faults import ext_faults
from seglog.doctor.plans.actions import Action, move_away
from seglog.storage.directory import QueueFiles, infer_file_size, numbered_files, queue_directory, read_units
from seglog.storage.files import Files, resize, write_over
from seglog.storage.format.layout import I64
from seglog.storage.format.names import CONSUME_QUEUE_EXT, parse_segment_file_name, segment_file_name
from seglog.storage.format.queue import CQ_UNIT, CQ_UNIT_BYTES, Units
from seglog.storage.survey import Survey
from seglog.text import count_text


def mend_ext(found: Survey, files: Files) -> Iterator[Action]:
    """Repairs ``consumequeue_ext/`` and the units that lead into it; yields the actions.

    Args:
        found: A survey of the store, whose log and queues are already repaired.
        files: Access to the store.
    """
    for key in found.queue_files:
        yield from _mend_files(found, files, key)
        yield from _mend_units(found, files, found.queue_files[key])


def _mend_files(found: Survey, files: Files, key: tuple[str, int]) -> Iterator[Action]:
    directory = queue_directory(*key, CONSUME_QUEUE_EXT)
    for entry in files.list_dir(found.root / directory):
        if not entry.is_dir and parse_segment_file_name(entry.name) is None:
            yield move_away(files, found.root, f"{directory}/{entry.name}")
    sizes = numbered_files(files, found.root / directory)
    size = infer_file_size(sizes.items(), 0)
    for first, has in sizes.items():
        if has == size:
            continue
        name = f"{directory}/{segment_file_name(first)}"
        resize(files, found.root / name, size)
        yield Action("length", name, detail=f"{has} bytes, the others have {size}")


def _mend_units(found: Survey, files: Files, queue: QueueFiles) -> Iterator[Action]:
    """Writes the log's tags code into units whose filter data is gone or belongs to another message."""
    file_bytes = found.geometry.queue_file_size_bytes
    first_slot, units = read_units(files, queue, file_bytes)
    key = queue.topic, queue.queue_id
    faults = ext_faults(files, found.root, key, units, found.geometry.segment_size_bytes)
    lost = sorted(faults.lost + faults.wrong)
    if not lost:
        return
    for at, code in zip(lost, unit_codes(found, units[lost]), strict=True):
        place = (first_slot + at) * CQ_UNIT_BYTES
        position = place % file_bytes
        path = queue.directory / segment_file_name(place - position)
        write_over(files, path, position + CQ_UNIT.offsets["tags_code"], I64.pack(code))
    detail = f"{count_text(len(lost), 'unit')} of {faults.addressed} with filter data"
    yield Action("filter", queue.name, detail=detail)


def unit_codes(found: Survey, units: Units) -> list[int]:
    """Returns the tags codes that units have in a rebuilt queue; 0 for a unit without record."""
    starts = found.rows["phy_offset"]
    if not len(starts):
        return [0] * len(units)
    at = np.searchsorted(starts, units["phy_offset"]).clip(max=len(starts) - 1)
    is_there = starts[at] == units["phy_offset"]
    codes: list[int] = np.where(is_there, found.rows["tags_code"][at], 0).tolist()
    return codes
