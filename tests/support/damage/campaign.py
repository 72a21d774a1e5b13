"""One random damage to a copy of a store: what it hits by the bytes, and what the store then serves."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from seglog.errors import SeglogError
from seglog.storage.directory.geometry import FileSizes
from seglog.storage.format.get_status import GetStatus
from seglog.storage.format.names import COMMIT_LOG, LOCK_FILE
from seglog.storage.store import MessageStore
from tests.support.machine.shared import copy_tree
from tests.support.material.stores import new_clock

SECTOR_BYTES: Final = 512
LOG_SHARE: Final = 0.6
"""How much of the damage goes to the commit log; the rest goes to the other parts of the store alike."""

COMPACTED: Final = "Compacted"
"""The compaction topic of a store that has one."""

Key = tuple[str, int, int]
"""Topic, queue and physical offset; for a compaction topic, whose copies are elsewhere, the queue offset."""


@dataclass(frozen=True)
class Stored:
    """One record as a queue serves it.

    Attributes:
        phy_offset: Where it is in the commit log; None for a copy in the log of a compaction topic.
        next_offset: Where its queue continues after it.
    """

    phy_offset: int | None
    size_bytes: int
    next_offset: int
    body: bytes
    properties: bytes


@dataclass(frozen=True)
class Subject:
    """A store to be damaged, and the truth about it.

    Attributes:
        root: Its directory, which is never changed.
        older: The same directory at an earlier moment, where stale sectors come from.
        records: All that it serves.
        ends: Where each queue continues.
        sizes: What the configuration says of files of which a damage may leave none.
    """

    root: Path
    older: Path
    records: dict[Key, Stored]
    ends: dict[tuple[str, int], int]
    segment_size_bytes: int
    sizes: FileSizes

    @property
    def has_record_crc(self) -> bool:
        """Whether every record has a checksum over all of it."""
        return all(b"__CRC32#" in record.properties for record in self.records.values())

    @classmethod
    def of(cls, root: Path, older: Path, sizes: FileSizes) -> Subject:
        """Reads an undamaged store."""
        with MessageStore.open(root, read_only=True, clock=new_clock()) as store:
            return cls(
                root, older, read_records(store), _ends(store), store.geometry.segment_size_bytes, sizes
            )

    def hits(self, damaged: Path) -> set[Key]:
        """Returns the records of which the damage changed or took any byte."""
        files: dict[str, tuple[bytes, bytes]] = {}
        hit: set[Key] = set()
        for key, record in self.records.items():
            if record.phy_offset is None:
                continue  # there are two of it, and one damage hits one
            position = record.phy_offset % self.segment_size_bytes
            name = f"{COMMIT_LOG}/{record.phy_offset - position:020d}"
            if name not in files:
                files[name] = (_content(self.root / name), _content(damaged / name))
            stretch = slice(position, position + record.size_bytes)
            was, now = (content[stretch] for content in files[name])
            if was != now:
                hit.add(key)
        return hit


@dataclass
class Outcome:
    """What a damage led to.

    Attributes:
        damage: What was done.
        lost: Records that it did not touch, and that are gone.
        wrong: Records that are served with another body, or that it did not touch and that are served with
            other properties or at another offset.
        changed: Records that it touched and that are served with other properties, or in another queue.
        whole: Records that it touched and that are served as they were.
        silent: Records that are gone although nothing was reported.
        given_again: Queues whose next message gets an offset that was given before.
        unstable: Whether a second opening serves something else.
        refused: What the store said when it would not open.
    """

    damage: str
    lost: set[Key] = field(default_factory=set)
    wrong: set[Key] = field(default_factory=set)
    changed: set[Key] = field(default_factory=set)
    whole: set[Key] = field(default_factory=set)
    hit: set[Key] = field(default_factory=set)
    silent: set[Key] = field(default_factory=set)
    given_again: list[tuple[str, int]] = field(default_factory=list)
    unstable: bool = False
    refused: str = ""

    @property
    def is_good(self) -> bool:
        """Whether every promise was kept."""
        broken = self.lost or self.wrong or self.silent or self.given_again or self.unstable or self.refused
        return not broken


def read_records(store: MessageStore) -> dict[Key, Stored]:
    """Returns all that a store serves, read one by one."""
    found: dict[Key, Stored] = {}
    for queue in store.queues():
        # The log of a compaction topic still holds what retention took from the commit log.
        at = 0 if queue.topic == COMPACTED else store.min_offset(queue.topic, queue.queue_id)
        while True:
            result = store.get(queue.topic, queue.queue_id, at, 1)
            if result.status in {GetStatus.OFFSET_OVERFLOW_ONE, GetStatus.NO_MESSAGE_IN_QUEUE}:
                break
            assert result.next_offset > at, result
            for message in result:
                place = None if queue.topic == COMPACTED else message.phy_offset
                found[queue.topic, queue.queue_id, at if place is None else place] = Stored(
                    place,
                    message.size_bytes,
                    result.next_offset,
                    message.body,
                    message.properties_raw,
                )
            at = result.next_offset
    return found


def suffer(subject: Subject, copy: Path, chance: random.Random, kind: str | None = None) -> Outcome:
    """Damages a fresh copy of a store, opens it and says what became of it.

    Args:
        subject: The store.
        copy: Where the copy is made; it must not exist.
        chance: Decides everything.
        kind: A key of :data:`KINDS`; drawn if None.
    """
    copy_tree(subject.root, copy)
    kind = kind or chance.choice(sorted(KINDS))
    outcome = Outcome(KINDS[kind](subject, copy, chance))
    outcome.hit = subject.hits(copy)
    try:
        with _opened(subject, copy) as store:
            served = read_records(store)
            judge(subject, outcome, served, store)
            for (topic, queue_id), end in subject.ends.items():
                if store.max_offset(topic, queue_id) < end:
                    outcome.given_again.append((topic, queue_id))
        with _opened(subject, copy) as store:
            outcome.unstable = read_records(store) != served
    except SeglogError as error:
        outcome.refused = f"{type(error).__name__}: {error}"
    return outcome


def _opened(subject: Subject, copy: Path) -> MessageStore:
    """Opens a damaged copy with the lengths of its configuration: no file may be left that states them."""
    return MessageStore.open(
        copy,
        clock=new_clock(),
        create=False,
        segment_size_bytes=subject.segment_size_bytes,
        queue_file_size_bytes=subject.sizes.queue_file_bytes,
    )


def judge(subject: Subject, outcome: Outcome, served: dict[Key, Stored], store: MessageStore) -> None:
    """Notes in an outcome what of a damaged store is served, and what is not."""
    truths = {record.phy_offset: record for record in subject.records.values()}
    for key, record in served.items():
        truth = subject.records.get(key) or truths.get(record.phy_offset)
        if truth is None or truth.body != record.body:
            outcome.wrong.add(key)
        elif subject.records.get(key) == record:
            if key in outcome.hit:
                outcome.whole.add(key)
        elif any(hit[2] == record.phy_offset for hit in outcome.hit):
            outcome.changed.add(key)
        else:
            outcome.wrong.add(key)
    gone = subject.records.keys() - served.keys()
    outcome.lost = gone - outcome.hit
    # A log that lost its first files is one that retention shortened.
    noted = {key for key in gone if key[0] == COMPACTED or key[2] >= store.min_phy_offset}
    outcome.silent = noted if noted and not store.recovery.findings else set()


def _ends(store: MessageStore) -> dict[tuple[str, int], int]:
    return {(queue.topic, queue.queue_id): queue.max_offset for queue in store.queues()}


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _pick(root: Path, chance: random.Random) -> Path:
    """Returns a file with content: of the log, or of any part of the store, large or small.

    The lock file holds nothing that is read.
    """
    files = sorted(path for path in root.rglob("*") if path.is_file() and path.stat().st_size)
    log = [path for path in files if path.parent.name == COMMIT_LOG]
    if chance.random() < LOG_SHARE:
        return chance.choice(log)
    parts = sorted({path.relative_to(root).parts[0] for path in files} - {COMMIT_LOG, LOCK_FILE})
    part = chance.choice(parts)
    return chance.choice([path for path in files if path.relative_to(root).parts[0] == part])


def _place(data: bytearray, chance: random.Random) -> int:
    """Returns a place in a file, mostly one where something was written."""
    written = len(data.rstrip(b"\0"))
    return chance.randrange(written if written and chance.random() < 0.9 else len(data))


def _changing(
    what: str, change: Callable[[Subject, Path, bytearray, random.Random], str]
) -> Callable[[Subject, Path, random.Random], str]:
    def act(subject: Subject, root: Path, chance: random.Random) -> str:
        while True:  # zeros written over zeros are no damage
            path = _pick(root, chance)
            content = path.read_bytes()
            data = bytearray(content)
            detail = change(subject, path.relative_to(root), data, chance)
            if data != content:
                path.write_bytes(data)
                return f"{what} {path.relative_to(root)} {detail}"

    return act


def _flip(_subject: Subject, _path: Path, data: bytearray, chance: random.Random) -> str:
    at, bit = _place(data, chance), chance.randrange(8)
    data[at] ^= 1 << bit
    return f"+{at} bit {bit}"


def _sector(data: bytearray, chance: random.Random) -> int:
    return _place(data, chance) // SECTOR_BYTES * SECTOR_BYTES


def _zero(_subject: Subject, _path: Path, data: bytearray, chance: random.Random) -> str:
    at, sectors = _sector(data, chance), chance.choice([1, 1, 2, 8, 32])
    end = min(len(data), at + sectors * SECTOR_BYTES)
    data[at:end] = bytes(end - at)
    return f"+{at} {end - at} bytes"


def _noise(_subject: Subject, _path: Path, data: bytearray, chance: random.Random) -> str:
    at, size = _place(data, chance), chance.choice([1, 4, 30, 300, 3000])
    end = min(len(data), at + size)
    data[at:end] = chance.randbytes(end - at)
    return f"+{at} {end - at} bytes"


def _stale(subject: Subject, path: Path, data: bytearray, chance: random.Random) -> str:
    old = _content(subject.older / path)
    at = _sector(data, chance)
    end = min(len(data), at + SECTOR_BYTES)
    data[at:end] = old[at:end].ljust(end - at, b"\0")
    return f"+{at}"


def _swap(_subject: Subject, _path: Path, data: bytearray, chance: random.Random) -> str:
    one, other = _sector(data, chance), _sector(data, chance)
    size = min(SECTOR_BYTES, len(data) - max(one, other))
    data[one : one + size], data[other : other + size] = data[other : other + size], data[one : one + size]
    return f"+{one} +{other}"


def _truncate(_subject: Subject, _path: Path, data: bytearray, chance: random.Random) -> str:
    at = chance.choice([0, _place(data, chance), _place(data, chance)])
    del data[at:]
    return f"at {at}"


def _delete(_subject: Subject, root: Path, chance: random.Random) -> str:
    path = _pick(root, chance)
    path.unlink()
    return f"delete {path.relative_to(root)}"


def _delete_folder(_subject: Subject, root: Path, chance: random.Random) -> str:
    folders = sorted(path for path in root.rglob("*") if path.is_dir() and path.name != COMMIT_LOG)
    folder = chance.choice(folders)
    shutil.rmtree(folder)
    return f"delete folder {folder.relative_to(root)}"


def _foreign(_subject: Subject, root: Path, chance: random.Random) -> str:
    folder = _pick(root, chance).parent
    model = chance.choice(sorted(path for path in folder.iterdir() if path.is_file()))
    size = model.stat().st_size
    name = chance.choice(["x", model.name + ".bak", model.name + "~", "9" * 20, "12345", ".DS_Store"])
    content = chance.choice([b"", chance.randbytes(100), model.read_bytes(), bytes(size)])
    (folder / name).write_bytes(content)
    return f"foreign {folder.relative_to(root)}/{name} of {len(content)} bytes"


KINDS: Final[dict[str, Callable[[Subject, Path, random.Random], str]]] = {
    "flip": _changing("flip", _flip),
    "zero": _changing("zero", _zero),
    "noise": _changing("noise", _noise),
    "stale": _changing("stale", _stale),
    "swap": _changing("swap", _swap),
    "truncate": _changing("truncate", _truncate),
    "delete": _delete,
    "delete folder": _delete_folder,
    "foreign": _foreign,
}
"""Acts of damage by name; each returns what it did."""
