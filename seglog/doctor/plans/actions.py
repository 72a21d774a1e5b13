"""One action of a repair, and its effect on messages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.storage.files import Files
from seglog.storage.format.names import STRAY
from seglog.storage.overlay import LostMessages

KINDS: Final[dict[str, str]] = {
    "undo": "take back the repair that was stopped",
    "discard": "move a journal that cannot be believed aside",
    "erase": "finish the erase that was stopped",
    "bit": "flip a bit back",
    "head": "write again what a record states and something else proves",
    "moved": "bring a record back that stands at another place of the log",
    "attic": "bring a record back whose bytes are in the attic",
    "hole": "fill a hole with tombstones",
    "tail-lost": "write tombstones for the lost end",
    "tail-cut": "cut a torn write and zero what is behind it",
    "spare": "remove files of the log after its end",
    "segment": "make a commit-log file",
    "name": "give a file of the log its name",
    "length": "give a file its length",
    "stray": "move a foreign file to seglog/stray",
    "queue": "write queue files from the log",
    "compaction": "write the log of a compaction topic from the commit log",
    "compaction-queue": "make a queue file of a compaction topic again from its own log",
    "compaction-record": "rewrite records of a compaction log from the commit log, or as tombstones",
    "timer": "make a file of the timer again",
    "filter": "give queue units the hash of the tag that filter data had",
    "index": "write the key index from the log",
    "rescan": "leave abort and an empty checkpoint, so that RocketMQ walks the whole log",
    "close": "finish what a crash left, and take the abort file away",
    "checkpoint": "set the checkpoint to what the log holds",
    "own": "put a file of seglog's own right, or remove it",
    "config": "make a config file again",
    "offset": "set an offset to where it can be",
    "half": "commit or roll back a half message",
}
"""Stable short name of each kind of action, and what the action does."""


@dataclass(frozen=True, slots=True)
class Action:
    """One action of a repair.

    Attributes:
        kind: A key of :data:`KINDS`.
        file: The file, relative to the store; the first one if there are several.
        position_bytes: Position in the file.
        size_bytes: Length of the stretch concerned, 0 if it has no meaning.
        detail: What is found and done there, in a few words.
        saved: Messages that a queue serves because of it, or serves still after RocketMQ's next crash.
            Records of the logs of timer and compaction are none: their messages are in the commit log.
        lost: Messages that stay lost.
    """

    kind: str
    file: str
    position_bytes: int = 0
    size_bytes: int = 0
    detail: str = ""
    saved: int = 0
    lost: tuple[LostMessages, ...] = ()

    @property
    def lost_messages(self) -> int:
        """Number of messages that stay lost."""
        return sum(len(one.offsets) for one in self.lost)

    @property
    def purpose(self) -> str:
        """A sentence on what the action does."""
        return KINDS[self.kind]


def move_away(files: Files, root: Path, name: str) -> Action:
    """Moves a file to ``seglog/stray``, where it keeps its relative path."""
    source = root / name
    target = root / STRAY / name
    number = 1
    while files.exists(target):
        number += 1
        target = root / STRAY / f"{name}.{number}"
    size = next((e.size_bytes for e in files.list_dir(source.parent) if e.name == source.name), 0)
    files.make_dirs(target.parent)
    files.rename(source, target)
    return Action("stray", name, size_bytes=size, detail=f"to {target.relative_to(root).as_posix()}")
