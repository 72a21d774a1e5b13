"""Stores with lanes of either kernels, and without one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from seglog.storage import lanes as lanes_module
from seglog.storage import queue_opening
from seglog.storage import writer as writer_module
from seglog.storage.kernels import NATIVE
from seglog.storage.kernels import lane as lane_module
from seglog.storage.kernels import pulls as pulls_module
from seglog.storage.kernels import tips as tips_module
from seglog.storage.lanes import LANE_CALLS
from seglog.storage.store import MessageStore
from tests.support.kernels import native


@contextmanager
def lanes_of(kernels: str) -> Iterator[None]:
    """Gives stores that are opened in the block lanes and tips of one kind of kernels."""
    module = native() if kernels == NATIVE else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes_module, "Lane", module.Lane if module else lane_module.PythonLane)
        patch.setattr(writer_module, "LogTip", module.LogTip if module else tips_module.PythonLogTip)
        patch.setattr(queue_opening, "QueueTip", module.QueueTip if module else tips_module.PythonQueueTip)
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
