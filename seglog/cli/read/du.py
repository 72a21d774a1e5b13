"""``seglog inspect du``: the space that a store takes, by part and by topic.

Files of a store consist mostly of holes after the data, so their space on the disk is shown beside their
lengths. The share of each topic is computed from its queues' units, which is quick and an estimate; the rest
of the log belongs to no queue.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

import click
import numpy as np

from seglog.cli.read.batch_queues import stored_batch_bytes
from seglog.cli.read.reading import check_store, file_sizes, log_as_stated
from seglog.cli.ui import options, render
from seglog.storage.directory import list_store, read_units_left
from seglog.storage.files import StoreRoot
from seglog.storage.format import names
from seglog.storage.format.queue import COMPACTION
from seglog.storage.overlay import is_message
from seglog.storage.seals import SEALS

_PARTS: Final = (
    names.COMMIT_LOG,
    names.CONSUME_QUEUE,
    names.BATCH_CONSUME_QUEUE,
    names.CONSUME_QUEUE_EXT,
    names.INDEX,
    COMPACTION,
    "timerwheel",
    "timerlog",
    names.CONFIG,
    SEALS,
    f"{names.OURS}/attic",
)
_OTHERS: Final = "others"
_TOPICS_SHOWN: Final = 50


@click.command
@options.store
@options.as_json
def command(*, path: Path, as_json: bool) -> None:
    """Show what each part of STORE takes: the lengths of its files, and what they take on the disk.

    Of each topic it shows how much of the log its queues lead to.
    """
    check_store(path)
    parts = part_sizes(path)
    topics, log_bytes = topic_bytes(path)
    shares = sorted(topics.items(), key=lambda item: (-item[1], item[0]))
    if as_json:
        for name, (files, apparent, allocated) in parts.items():
            fields = {"files": files, "fileBytes": apparent, "diskBytes": allocated}
            render.emit({"kind": "part", "part": name, **fields})
        for topic, size in shares:
            render.emit({"kind": "topic-size", "topic": topic, "logBytes": size})
        return
    totals = [sum(column) for column in zip(*parts.values(), strict=True)] or [0, 0, 0]
    rows = [
        (name, files, render.size_text(apparent), render.size_text(allocated))
        for name, (files, apparent, allocated) in (*parts.items(), ("all", totals))
    ]
    render.table(("part", "files", "length", "on disk"), rows, numbers=("files", "length", "on disk"))
    if shares:
        render.say()
        render.table(
            ("topic", "log bytes", "share"),
            [
                (render.printable(topic), render.size_text(size), f"{100 * size / max(1, log_bytes):.1f} %")
                for topic, size in shares[:_TOPICS_SHOWN]
            ],
            numbers=("log bytes", "share"),
        )
    if len(shares) > _TOPICS_SHOWN:
        render.say(f"… and {render.count_text(len(shares) - _TOPICS_SHOWN)} more; --json prints all")


def part_sizes(path: Path) -> dict[str, tuple[int, int, int]]:
    """Returns number of files, total length and space on the disk, for each part of the store."""
    sums = {name: [0, 0, 0] for name in (*_PARTS, _OTHERS)}
    files = options.reading(path)
    for item in files.list_dir(path):
        nested = [part for part in _PARTS if part.startswith(f"{item.name}/")]
        if item.name in files.log_folders:
            _add(sums[names.COMMIT_LOG], files, path / item.name)
        elif item.name in _PARTS:
            _add(sums[item.name], files, path / item.name)
        elif nested and item.is_dir:
            for inner in files.list_dir(path / item.name):
                name = f"{item.name}/{inner.name}"
                _add(sums[name if name in sums else _OTHERS], files, path / name)
        else:
            _add(sums[_OTHERS], files, path / item.name)
    return {
        name: (files, apparent, allocated) for name, (files, apparent, allocated) in sums.items() if files
    }


def _add(total: list[int], files: StoreRoot, item: Path) -> None:
    for allocated, apparent in file_sizes(files, item):
        total[0] += 1
        total[1] += apparent
        total[2] += allocated


def topic_bytes(path: Path) -> tuple[Counter[str], int]:
    """Returns the bytes of the log that each topic's queues lead to, and the length of the log's files.

    Log files with a wrong name count at the place that their records state.
    Units with an impossible place or size do not count. Units of ``%LMQ%`` queues share records of
    other queues.
    """
    files = log_as_stated(path)
    listing = list_store(files, path)
    log_files, geometry = listing.log_files, listing.geometry
    low = min((file.first_offset for file in log_files), default=0)
    high = max((file.first_offset for file in log_files), default=0) + geometry.segment_size_bytes
    totals: Counter[str] = Counter()
    for queue in listing.queue_files.values():
        _first, units = read_units_left(files, queue, geometry.queue_file_size_bytes)
        place, size = units["phy_offset"], units["size_bytes"]
        fits = is_message(units) & (place >= low) & (place < high) & (size <= geometry.segment_size_bytes)
        totals[queue.topic] += int(np.sum(size[fits], dtype=np.int64))
    totals.update(stored_batch_bytes(path, low, high))
    allocated = sum(file.size_bytes for file in log_files)
    return Counter({topic: size for topic, size in totals.items() if size}), allocated
