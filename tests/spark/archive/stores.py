"""Small stores for archives, and what is asked of an archive of them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from seglog import MessageStore
from seglog.clock import VirtualClock
from seglog.spark.archive.folder import ArchiveFolder, archived, still_missing
from seglog.spark.archive.restore_base import Sizes
from seglog.spark.compact.compact import Compaction
from seglog.spark.compact.policy import Policy
from seglog.storage.files.files import RealFiles, SwappingFiles
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.names import COMMIT_LOG
from tests.support.local_runner import LocalRunner
from tests.support.material.compactions import SIZES, said
from tests.support.material.stores import served

BEGIN_MS: Final = 1_800_000_000_000
NEW_SIZES: Final = Sizes(16384, 2000, IndexGeometry(500, 2000))


def put(root: Path, count: int, begin: int = 0, topic: str = "T", word: str = "m") -> Path:
    """Puts messages into two queues of a topic; the clock continues with their numbers."""
    clock = VirtualClock(BEGIN_MS + begin * 1000)
    with MessageStore.open(root, clock=clock, **({} if root.exists() else SIZES)) as store:
        for number in range(begin, begin + count):
            body = b"%s %d " % (word.encode(), number) * 9
            store.put(topic, body, queue_id=number % 2, keys=f"k{number % 7}")
            clock.advance(1000)
    return root


def copy(root: Path, target: Path) -> Path:
    """Returns a copy of a store with the times of its files."""
    shutil.copytree(root, target, copy_function=shutil.copy2)
    return target


def content(root: Path) -> dict[tuple[str, int], list[tuple[object, ...]]]:
    """Returns all that a store serves, as far as it does not depend on places in the log."""
    with MessageStore.open(root, read_only=True) as store:
        return {key: [said(m) for m in messages] for key, messages in served(store).items()}


def named_missing(folder: Path, name: str, ends: dict[tuple[str, int], int]) -> set[tuple[object, ...]]:
    """Asserts that queues are archived from 0 to their ends or named as missing; returns what is missing."""
    runs = [run for run in ArchiveFolder(folder).runs() if run.name == name]
    ranges, _stretches = still_missing(runs)
    held = archived(runs)
    for (topic, queue_id), end in ends.items():
        own = [(part.first, part.end) for part in held.get((topic, queue_id), [])]
        own += [(one.first, one.end) for one in ranges if (one.topic, one.queue_id) == (topic, queue_id)]
        own.sort()
        reached = 0
        for first, stop in own:
            assert first == reached, (topic, queue_id, own)
            reached = stop
        assert reached == end, (topic, queue_id, own)
    return {(one.topic, one.queue_id, one.first, one.end, one.why) for one in ranges}


def compact(root: Path, now_ms: int, **policies: Policy) -> None:
    """Compacts a store in this process."""
    compact_with(RealFiles(), root, now_ms, policies)


def compact_with(files: SwappingFiles, root: Path, now_ms: int, policies: dict[str, Policy]) -> None:
    """Compacts a store in this process, through a layer of files."""
    job = Compaction(
        root,
        policies,
        allow_undelivered=True,
        split_bytes=6_000,
        runner=LocalRunner(RealFiles()),
        files=files,
        clock=VirtualClock(now_ms),
    )
    job.apply()


def expire(root: Path, files: int = 1) -> None:
    """Has retention take the oldest files of a log, but never the last."""
    with MessageStore.open(root) as store:
        segments = store.retention.segments()[:files]
        if segments:
            store.retention.delete_before(segments[-1].end_phy_offset)


def place_of(root: Path, queue_id: int, queue_offset: int, topic: str = "T") -> tuple[int, int]:
    """Returns the first byte and the length of a record in the log."""
    with MessageStore.open(root, read_only=True) as store:
        message = next(iter(store.get(topic, queue_id, queue_offset)))
        return message.phy_offset, message.size_bytes


def damage(root: Path, queue_id: int, queue_offset: int, topic: str = "T") -> tuple[int, int]:
    """Flips bits of a record's body and head; returns where the record is."""
    place, size = place_of(root, queue_id, queue_offset, topic)
    write_at(root, place, [byte ^ 0xA5 for byte in bytes_at(root, place, size)])
    return place, size


def bytes_at(root: Path, place: int, size: int) -> bytes:
    """Returns a stretch of the log, of one file."""
    data = (root / COMMIT_LOG / f"{place - place % 16384:020d}").read_bytes()
    return data[place % 16384 : place % 16384 + size]


def write_at(root: Path, place: int, data: Iterable[int]) -> None:
    """Writes into the log."""
    with (root / COMMIT_LOG / f"{place - place % 16384:020d}").open("r+b") as file:
        file.seek(place % 16384)
        file.write(bytes(data))


def cut_log(root: Path, queue_id: int, queue_offset: int) -> None:
    """Cuts the log at the end of a record, as a disk that lost its last writes does; queues know more."""
    place, size = place_of(root, queue_id, queue_offset)
    end = place + size
    write_at(root, end, bytes(16384 - end % 16384))
    for path in sorted((root / COMMIT_LOG).iterdir()):
        if int(path.name) > place:
            path.unlink()
