"""Damage to the queue files of a store and to nothing else: files and units in each other's places."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final

from seglog import MessageStore
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.names import CONSUME_QUEUE
from seglog.storage.format.queue.consume_queue import CQ_UNIT_BYTES
from tests.support.material.stores import new_clock

_ASIDE: Final = "aside"


def queue_files(root: Path) -> list[Path]:
    """Returns the queue files of a store, in order."""
    return sorted(path for path in (root / CONSUME_QUEUE).rglob("*") if path.is_file())


def exchange(one: Path, other: Path) -> None:
    """Gives two files, or folders, each other's name."""
    aside = one.with_name(_ASIDE)
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def slow_store(root: Path) -> Path:
    """Makes a store of several log files and queue files, which took half an hour to write, and closes it."""
    clock = new_clock()
    with MessageStore.open(
        root,
        clock=clock,
        segment_size_bytes=64 << 10,
        queue_file_size_bytes=2_000,
        index_geometry=IndexGeometry(500, 2_000),
    ) as store:
        for number in range(450):
            store.put("TU"[number % 2], b"%d" % number * 100)
            clock.advance(timedelta(seconds=4))
    return root


def older_queues(root: Path, kept: float) -> None:
    """Gives a store the queue files of an older copy: of each queue the first units, this share of them."""
    for queue in {path.parent for path in queue_files(root)}:
        paths = sorted(queue.iterdir())
        units = b"".join(path.read_bytes() for path in paths).rstrip(b"\0")
        left = units[: int(len(units) * kept) // CQ_UNIT_BYTES * CQ_UNIT_BYTES]
        for path in paths:
            size, first = path.stat().st_size, int(path.name)
            if first >= len(left):
                path.unlink()
            else:
                path.write_bytes(left[first : first + size].ljust(size, b"\0"))


def damage_queues(root: Path, chance: random.Random) -> str:
    """Damages the queue files of a store one to three times; returns what was done, in words."""
    kinds = chance.choices(sorted(KINDS), k=chance.choice([1, 1, 2, 3]))
    return ", ".join(f"{kind}: {KINDS[kind](root, chance)}" for kind in kinds)


def _two(root: Path, chance: random.Random, *, same_name: bool) -> tuple[Path, Path]:
    files = queue_files(root)
    while True:
        one, other = chance.sample(files, 2)
        if (one.name == other.name or not same_name) and one != other:
            return one, other


def _named(root: Path, *paths: Path) -> str:
    return " and ".join(path.relative_to(root / CONSUME_QUEUE).as_posix() for path in paths)


def _exchange(root: Path, chance: random.Random, *, same_name: bool) -> str:
    one, other = _two(root, chance, same_name=same_name)
    exchange(one, other)
    return _named(root, one, other)


def _copy(root: Path, chance: random.Random) -> str:
    one, other = _two(root, chance, same_name=chance.random() < 0.7)
    shutil.copyfile(one, other)
    return _named(root, one, other)


def _units(root: Path, chance: random.Random, *, both: bool) -> str:
    """Units of two queues change places, or those of one come into both."""
    one, other = _two(root, chance, same_name=True)
    contents = [bytearray(path.read_bytes()) for path in (one, other)]
    count = min(len(content.rstrip(b"\0")) // CQ_UNIT_BYTES + 1 for content in contents)
    first = chance.randrange(count)
    size = chance.choice([1, 1, 2, 3, 10, count])
    stretch = slice(first * CQ_UNIT_BYTES, min(first + size, count) * CQ_UNIT_BYTES)
    here, there = (bytes(content[stretch]) for content in contents)
    contents[0][stretch] = there
    if both:
        contents[1][stretch] = here
    for path, content in zip((one, other), contents, strict=True):
        path.write_bytes(content)
    return f"{_named(root, one, other)} +{stretch.start} to {stretch.stop}"


def _move_unit(root: Path, chance: random.Random) -> str:
    """A unit comes from its queue into another one, and is gone in its own."""
    one, other = _two(root, chance, same_name=True)
    contents = [bytearray(path.read_bytes()) for path in (one, other)]
    at = chance.randrange(max(1, len(contents[0].rstrip(b"\0")) // CQ_UNIT_BYTES + 1)) * CQ_UNIT_BYTES
    unit = slice(at, at + CQ_UNIT_BYTES)
    contents[1][unit], contents[0][unit] = contents[0][unit], bytes(len(contents[0][unit]))
    for path, content in zip((one, other), contents, strict=True):
        path.write_bytes(content)
    return f"{_named(root, one, other)} +{at}"


def _shift(root: Path, chance: random.Random) -> str:
    """Units are missing in the middle of a file, or exist twice, and those after them moved."""
    path = chance.choice(queue_files(root))
    content = path.read_bytes()
    count = max(1, len(content.rstrip(b"\0")) // CQ_UNIT_BYTES)
    at, size = chance.randrange(count) * CQ_UNIT_BYTES, chance.choice([1, 1, 2, 5]) * CQ_UNIT_BYTES
    if chance.random() < 0.5:
        made = (content[:at] + content[at + size :]).ljust(len(content), b"\0")
    else:
        made = (content[: at + size] + content[at:])[: len(content)]
    path.write_bytes(made)
    return f"{_named(root, path)} +{at} {size} bytes"


def _older(root: Path, chance: random.Random) -> str:
    """A file as it was earlier."""
    path = chance.choice(queue_files(root))
    content = path.read_bytes()
    kept = chance.randrange(len(content.rstrip(b"\0")) // CQ_UNIT_BYTES + 1) * CQ_UNIT_BYTES
    path.write_bytes(content[:kept].ljust(len(content), b"\0"))
    return f"{_named(root, path)} to {kept}"


def _remove(root: Path, chance: random.Random) -> str:
    files = queue_files(root)
    path = chance.choice(files)
    if len(files) > 2:  # other kinds of damage want two
        path.unlink()
    return _named(root, path)


def _exchange_folders(root: Path, chance: random.Random) -> str:
    folders = sorted({path.parent for path in queue_files(root)})
    if len(folders) < 2:
        return "nothing"
    one, other = chance.sample(folders, 2)
    exchange(one, other)
    return _named(root, one, other)


KINDS: Final[dict[str, Callable[[Path, random.Random], str]]] = {
    "exchange files": lambda root, chance: _exchange(root, chance, same_name=True),
    "exchange any files": lambda root, chance: _exchange(root, chance, same_name=False),
    "exchange folders": _exchange_folders,
    "copy": _copy,
    "exchange units": lambda root, chance: _units(root, chance, both=True),
    "copy units": lambda root, chance: _units(root, chance, both=False),
    "move a unit": _move_unit,
    "shift": _shift,
    "older": _older,
    "remove": _remove,
}
"""Acts of damage by name; each returns what it did."""
