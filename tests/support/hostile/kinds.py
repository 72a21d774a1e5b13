"""Every kind of file of a store, and what an attacker may put in its place."""

from __future__ import annotations

import os
import random
import shutil
import socket
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.errors import SeglogError
from tests.support.hostile import forging
from tests.support.hostile.values import FILE_NAMES, lines, noise, tree

_MOST_BYTES: Final = 1 << 27
Change = Callable[[random.Random, Path, Path], str]
"""Given dice, a path in the store and the folder outside, changes something and names it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of file, or folder.

    Attributes:
        base: The store that it is in; a key of ``bases.BASES``.
        pattern: Which paths are of this kind.
        forge: Makes contents that look right; None for a folder.
    """

    base: str
    pattern: str
    forge: forging.Forge | None = None


def _noise(dice: random.Random, data: bytes, _root: Path) -> bytes:
    return noise(dice, data)


def _tree(dice: random.Random, data: bytes, _root: Path) -> bytes:
    return tree(dice, data)


def _lines(dice: random.Random, data: bytes, _root: Path) -> bytes:
    return lines(dice, data)


KINDS: Final[dict[str, Kind]] = {
    "log": Kind("everyday", "commitlog/*", forging.forge_log),
    "queue": Kind("everyday", "consumequeue/*/*/*", _noise),
    "index": Kind("everyday", "index/*", _noise),
    "checkpoint": Kind("everyday", "checkpoint", _noise),
    "abort": Kind("everyday", "abort", _noise),
    "lock": Kind("everyday", "lock", _noise),
    "epochs": Kind("everyday", "epochFileCheckpoint", _noise),
    "topics": Kind("everyday", "config/topics.json", _tree),
    "offsets": Kind("everyday", "config/consumerOffset.json", _tree),
    "groups": Kind("everyday", "config/subscriptionGroup.json", _tree),
    "delay offsets": Kind("everyday", "config/delayOffset.json", _tree),
    "recovery point": Kind("everyday", "seglog/recovery-point", forging.forge_point),
    "seal": Kind("everyday", "seglog/seals/*", forging.forge_seal),
    "holes": Kind("everyday", "seglog/holes", _tree),
    "attic": Kind("everyday", "seglog/attic/*", _noise),
    "undo journal": Kind("everyday", "seglog/undo/1/journal", forging.forge_pack),
    "undo after": Kind("everyday", "seglog/undo/1/after", forging.forge_pack),
    "undo kept": Kind("everyday", "seglog/undo/1/kept/1", _noise),
    "half undo": Kind("everyday", "seglog/undo/2/journal", forging.forge_pack),
    "erasing": Kind("everyday", "seglog/erasing", forging.forge_erasing),
    "offset history": Kind("everyday", "seglog/offsets/*", forging.forge_history),
    "parked": Kind("everyday", "seglog/parked/*", _lines),
    "receipts": Kind("everyday", "seglog/receipts/*", _lines),
    "locks": Kind("everyday", "seglog/locks.json", _tree),
    "branch file": Kind("everyday", "seglog/branches/b/seglog/branch", _tree),
    "branch log": Kind("everyday", "seglog/branches/b/commitlog/*", forging.forge_log),
    "evidence": Kind("everyday", "seglog/evidence/*", _noise),
    "stray": Kind("everyday", "seglog/stray/commitlog/x", _noise),
    "folder of the log": Kind("everyday", "commitlog"),
    "folder of a queue": Kind("everyday", "consumequeue/Topic0/0"),
    "folder of a topic": Kind("everyday", "consumequeue/Topic0"),
    "folder of the index": Kind("everyday", "index"),
    "folder of tables": Kind("everyday", "config"),
    "folder of ours": Kind("everyday", "seglog"),
    "folder of undo": Kind("everyday", "seglog/undo"),
    "folder of a pack": Kind("everyday", "seglog/undo/1"),
    "folder of a branch": Kind("everyday", "seglog/branches/b"),
    "folder of the attic": Kind("everyday", "seglog/attic"),
    "batch log": Kind("mixed", "commitlog/*", forging.forge_log),
    "batch queue": Kind("mixed", "batchconsumequeue/*/*/*", _noise),
    "light queue": Kind("mixed", "consumequeue/%LMQ%a/0/*", _noise),
    "compaction log": Kind("compacted", "compaction/compactionLog/*/*/*", forging.forge_log),
    "compaction queue": Kind("compacted", "compaction/compactionCq/*/*/*", _noise),
    "compaction place": Kind("compacted", "compaction/position-checkpoint", _noise),
    "broker log": Kind("broker", "commitlog/*", forging.forge_log),
    "filter data": Kind("broker", "consumequeue_ext/*/*/*", _noise),
    "timer log": Kind("broker", "timerlog/*", _noise),
    "timer wheel": Kind("broker", "timerwheel", _noise),
    "timer place": Kind("broker", "config/timercheck", _noise),
    "timer counts": Kind("broker", "config/timermetrics", _tree),
    "filters": Kind("broker", "config/consumerFilter.json", _tree),
    "order": Kind("broker", "config/consumerOrderInfo.json", _tree),
    "mappings": Kind("broker", "config/topicQueueMapping.json", _tree),
}


def damage(dice: random.Random, kind: Kind, store: Path, outside: Path) -> str:
    """Changes one file of a kind, or something beside it, and returns what was done.

    Args:
        dice: Decides what.
        kind: The kind.
        store: The store directory.
        outside: A folder beside the store that nothing may reach.
    """
    try:
        return _damage(dice, kind, store, outside)
    except (OSError, SeglogError) as error:  # an earlier damage took the folder away, or what is looked at
        return f"{kind.pattern}: {error}"


def _damage(dice: random.Random, kind: Kind, store: Path, outside: Path) -> str:
    found = sorted(store.glob(kind.pattern))
    path = dice.choice(found) if found else store / kind.pattern.replace("*", "0" * 20)
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind.forge is not None and dice.random() < 0.65:
        data = path.read_bytes() if _is_regular(path) else b""
        forged = kind.forge if dice.random() < 0.75 else _noise
        made = forged(dice, data, store)
        path.unlink(missing_ok=True)
        path.write_bytes(made)
        return f"{path.relative_to(store)}: {forged.__name__} of {len(made)} bytes"
    way = dice.choice(_FOLDER_WAYS if kind.forge is None else _FILE_WAYS)
    return f"{path.relative_to(store)}: {way(dice, path, outside)}"


def _is_regular(path: Path) -> bool:
    """Returns whether a path is a file itself, of no great length: a pipe would keep us waiting."""
    if not os.path.lexists(path):
        return False
    status = path.lstat()
    return stat.S_ISREG(status.st_mode) and status.st_size < _MOST_BYTES


def _gone(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _link(dice: random.Random, path: Path, outside: Path) -> str:
    target: object = dice.choice((
        outside / "canary", outside / "pipe", outside / "folder", outside / "absent", outside,
        "/dev/zero", "/proc/self/mem", path.name, "../../outside/canary",
    ))  # fmt: skip
    _gone(path)
    path.symlink_to(str(target))
    return f"link to {target}"


def _same_content(_dice: random.Random, path: Path, outside: Path) -> str:
    """A link to a file outside that holds the very bytes, so that nothing looks wrong."""
    twin = outside / "twin"
    if _is_regular(path):
        shutil.copyfile(path, twin)
    _gone(path)
    path.symlink_to(twin)
    return "link to a twin outside"


def _hard_link(_dice: random.Random, path: Path, outside: Path) -> str:
    twin = outside / "hard"
    if _is_regular(path):
        twin.unlink(missing_ok=True)
        os.link(path, twin)
        return "one name of two, the other outside"
    os.link(outside / "canary", path)
    return "another name of the canary"


def _pipe(_dice: random.Random, path: Path, _outside: Path) -> str:
    _gone(path)
    os.mkfifo(path)
    return "pipe"


def _socket(_dice: random.Random, path: Path, _outside: Path) -> str:
    _gone(path)
    here = Path.cwd()
    os.chdir(path.parent)  # a path of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(path.name[:90])
    finally:
        os.chdir(here)
    return "socket"


def _folder(_dice: random.Random, path: Path, _outside: Path) -> str:
    _gone(path)
    (path / "inner").mkdir(parents=True)
    return "folder"


def _plain_file(_dice: random.Random, path: Path, _outside: Path) -> str:
    _gone(path)
    path.write_bytes(b"a file")
    return "file in a folder's place"


def _huge(dice: random.Random, path: Path, _outside: Path) -> str:
    size = dice.choice((1 << 32, 1 << 36, (1 << 40) + 7, 1 << 43))
    if path.is_dir():
        path = path / dice.choice(("x", "0" * 20))
    if not _is_regular(path):
        _gone(path)
    path.touch()
    with path.open("r+b") as file:
        file.truncate(size)
        if dice.random() < 0.5:
            file.seek(size - 100)
            file.write(b"the end")
    return f"sparse, {size} bytes long"


def _neighbour(dice: random.Random, path: Path, outside: Path) -> str:
    """Puts something with a bad name beside a file, or into a folder."""
    folder = path if path.is_dir() else path.parent
    names = dice.sample(FILE_NAMES, dice.choice((1, 3)))
    for name in names:
        place = folder / os.fsdecode(name)
        if os.path.lexists(place):
            continue
        way = dice.choice(("file", "copy", "folder", "link", "pipe"))
        if way == "copy" and _is_regular(path):
            shutil.copyfile(path, place)
        elif way == "folder":
            place.mkdir()
        elif way == "link":
            place.symlink_to(outside / dice.choice(("canary", "folder", "pipe")))
        elif way == "pipe":
            os.mkfifo(place)
        else:
            place.write_bytes(dice.randbytes(dice.choice((0, 100, 4096))))
    return f"neighbours {names}"


def _absent(_dice: random.Random, path: Path, _outside: Path) -> str:
    _gone(path)
    return "gone"


def _deep(_dice: random.Random, path: Path, _outside: Path) -> str:
    """A very deep folder in the place of a folder."""
    _gone(path)
    path.mkdir()
    for _level in range(60):
        path = path / "d"
        path.mkdir()
    return "sixty folders deep"


_FILE_WAYS: Final[tuple[Change, ...]] = (
    _link, _link, _same_content, _hard_link, _pipe, _socket, _folder, _huge, _neighbour, _neighbour, _absent,
)  # fmt: skip
_FOLDER_WAYS: Final[tuple[Change, ...]] = (
    _link, _link, _pipe, _plain_file, _neighbour, _neighbour, _absent, _deep, _huge,
)  # fmt: skip
