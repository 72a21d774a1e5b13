"""Damages to lengths and names of the files of a log and its queues, for campaigns."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Final

from seglog.storage.format.names import COMMIT_LOG, CONSUME_QUEUE
from tests.support.damage.campaign import Subject

Damage = Callable[[Subject, Path, random.Random], str]


def log_files(root: Path) -> list[Path]:
    """Returns the files of the log in order."""
    return sorted((root / COMMIT_LOG).iterdir())


def _queue_files(root: Path) -> list[Path]:
    return [path for path in sorted((root / CONSUME_QUEUE).rglob("*")) if path.is_file()]


def _free_end(path: Path) -> int:
    """Returns where the last byte of a file ends that is not 0."""
    return len(path.read_bytes().rstrip(b"\0"))


def cut_each_log_file(_subject: Subject, root: Path, chance: random.Random) -> str:
    """Cuts all files of the log by the same few bytes, as a copy to a full disk may be."""
    by = chance.choice([1, 1, 7, 8])
    for path in log_files(root):
        os.truncate(path, path.stat().st_size - by)
    return f"each log file cut by {by}"


def cut_last(_subject: Subject, root: Path, chance: random.Random) -> str:
    """Cuts the last file of the log in its empty end."""
    path = log_files(root)[-1]
    size = path.stat().st_size
    at = chance.randint(min(_free_end(path) + 1, size - 1), size - 1)
    os.truncate(path, at)
    return f"{path.name} cut at {at}"


def cut_last_at_page(_subject: Subject, root: Path, chance: random.Random) -> str:
    """Cuts the last file of the log in its empty end, at a page, where other files state its length."""
    path = log_files(root)[-1]
    size = path.stat().st_size
    at = size - 4096 if len(log_files(root)) > 1 else size - chance.choice([1, 100])
    os.truncate(path, max(at, 0))
    return f"{path.name} cut at {at}"


def grow(_subject: Subject, root: Path, chance: random.Random) -> str:
    """Makes a file of the log longer, by zeros or noise."""
    path = chance.choice(log_files(root))
    with path.open("ab") as file:
        size = chance.choice([1, 100, 5000])
        file.write(chance.choice([bytes(size), chance.randbytes(size)]))
    return f"{path.name} grown by {size}"


def empty_last(_subject: Subject, root: Path, _chance: random.Random) -> str:
    """Makes the last file of the log 0 bytes long; of a sole one only if others would state its length."""
    paths = log_files(root)
    if len(paths) == 1:
        os.truncate(paths[0], paths[0].stat().st_size - 1)
        return f"{paths[0].name} cut by 1"
    os.truncate(paths[-1], 0)
    return f"{paths[-1].name} emptied"


def next_queue_file(subject: Subject, root: Path, chance: random.Random) -> str:
    """Makes the next file of a queue, all zeros."""
    folder = chance.choice(sorted({path.parent for path in _queue_files(root)}))
    last = max(folder.iterdir())
    size = last.stat().st_size
    (folder / f"{int(last.name) + size:020d}").write_bytes(bytes(size))
    return f"an empty file behind {last.relative_to(root)} in a store of {subject.segment_size_bytes}"


def cut_each_queue_file(_subject: Subject, root: Path, _chance: random.Random) -> str:
    """Cuts all queue files by one byte."""
    for path in _queue_files(root):
        os.truncate(path, path.stat().st_size - 1)
    return "each queue file cut by 1"


def swap_names(_subject: Subject, root: Path, chance: random.Random) -> str:
    """Gives two files of the log each other's name; the next one to the only file."""
    paths = log_files(root)
    if len(paths) == 1:
        target = paths[0].with_name(f"{paths[0].stat().st_size:020d}")
        paths[0].rename(target)
        return f"{paths[0].name} called {target.name}"
    one, other = chance.sample(paths, 2)
    held = one.with_name("held")
    one.rename(held)
    other.rename(one)
    held.rename(other)
    return f"{one.name} and {other.name} swapped"


LENGTH_KINDS: Final[dict[str, Damage]] = {
    "cut each log file": cut_each_log_file,
    "cut last": cut_last,
    "cut last at page": cut_last_at_page,
    "grow": grow,
    "empty last": empty_last,
    "next queue file": next_queue_file,
    "cut each queue file": cut_each_queue_file,
    "swap names": swap_names,
}
"""Acts of damage by name; each returns what it did."""
