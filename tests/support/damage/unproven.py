"""What a repair may leave to the operator: the exact rule, about the bytes that changed.

No checksum covers the values of a config table. Where a check finds that one cannot be, the store proves what
it was only by a name of RocketMQ's own, one byte off, or by a backup. All else a repair leaves, and names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from seglog.errors import CorruptError
from seglog.storage.format.config.config_json import decode_config

TABLES: Final = {
    "config/topics.json": (b"topicConfigTable", b"attributes", b"queue.type", b"BatchCQ"),
    "config/consumerOffset.json": (b"offsetTable",),
    "config/delayOffset.json": (b"offsetTable",),
    "config/subscriptionGroup.json": (b"subscriptionGroupTable",),
    "config/consumerFilter.json": (b"filterDataByTopic",),
}
"""The names and words in each table that prove themselves where one byte of them is wrong."""
LEFT: Final = frozenset({"config-shape", "queue-kind"})


def left_to_operator(store: Path, damaged: Path) -> frozenset[str]:
    """Returns the codes that a check may still find after a repair, but for notes.

    Args:
        store: The undamaged store.
        damaged: The damaged one.
    """
    names = {
        path.relative_to(root).as_posix()
        for root in (store, damaged)
        for path in root.rglob("*")
        if path.is_file()
    }
    changed = [name for name in names if _content(store / name) != _content(damaged / name)]
    if len(changed) != 1 or changed[0] not in TABLES or (damaged / f"{changed[0]}.bak").exists():
        return frozenset()
    was, now = _content(store / changed[0]), _content(damaged / changed[0])
    is_proven = was is None or now is None or _is_in_word(was, now, TABLES[changed[0]])
    return LEFT if not is_proven and now is not None and is_json(now) else frozenset()


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _is_in_word(was: bytes, now: bytes, words: tuple[bytes, ...]) -> bool:
    """Returns whether one byte changed, and that within a word."""
    places = [at for at, byte in enumerate(was) if now[at : at + 1] != bytes([byte])]
    if len(was) != len(now) or len(places) != 1:
        return False
    start, end = was.rfind(b'"', 0, places[0]) + 1, was.find(b'"', places[0])
    return was[start:end] in words


def is_json(data: bytes) -> bool:
    """Returns whether bytes are JSON as RocketMQ writes it."""
    try:
        decode_config(data)
    except CorruptError:
        return False
    return True
