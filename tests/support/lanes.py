"""Stores with lanes of either kernels, and without one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from seglog.storage.kernels import NATIVE
from seglog.storage.kernels import fast_path as lane_module
from seglog.storage.kernels import native_reads as pulls_module
from seglog.storage.kernels import tails as tips_module
from seglog.storage.queues import queue_opening
from seglog.storage.store import MessageStore
from seglog.storage.writes import fast_path as lanes_module
from seglog.storage.writes import writer as writer_module
from seglog.storage.writes.fast_path import LANE_CALLS
from tests.support.kernels import native


@contextmanager
def lanes_of(kernels: str) -> Iterator[None]:
    """Gives stores that are opened in the block lanes and tips of one kind of kernels."""
    module = native() if kernels == NATIVE else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes_module, "Lane", module.Lane if module else lane_module.PythonFastPath)
        patch.setattr(writer_module, "LogTail", module.LogTail if module else tips_module.PythonLogTail)
        patch.setattr(queue_opening, "QueueTail", module.QueueTail if module else tips_module.PythonQueueTail)
        if module is None:
            patch.setattr(pulls_module, "native_reads", None)  # they know native tips only
        yield


def without_lane(store: MessageStore) -> MessageStore:
    """Lets all calls go the ordinary way."""
    for name in LANE_CALLS:
        vars(store).pop(name, None)
    store._appends_async().take_lane(None, None)
    return store


def contents(root: Path) -> dict[str, bytes]:
    """Returns the bytes of all files of a closed store but the lock's."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name != "lock"
    }
