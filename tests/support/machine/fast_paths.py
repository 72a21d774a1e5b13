"""Stores with fast paths of either kernels, and without one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from seglog.storage.kernels import NATIVE
from seglog.storage.kernels.calls import fast_path as fast_path_module
from seglog.storage.kernels.calls import native_reads as pulls_module
from seglog.storage.kernels.calls import tails as tails_module
from seglog.storage.queues import queue_opening
from seglog.storage.store import MessageStore
from seglog.storage.writes import writer as writer_module
from seglog.storage.writes.fast_path import NO_FAST_PATH
from tests.support.machine.kernels import native
from tests.support.material.stores import writer_of


@contextmanager
def fast_paths_of(kernels: str) -> Iterator[None]:
    """Gives stores that are opened in the block fast paths and tails of one kind of kernels."""
    module = native() if kernels == NATIVE else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            fast_path_module, "FastPath", module.FastPath if module else fast_path_module.PythonFastPath
        )
        patch.setattr(writer_module, "LogTail", module.LogTail if module else tails_module.PythonLogTail)
        patch.setattr(
            queue_opening, "QueueTail", module.QueueTail if module else tails_module.PythonQueueTail
        )
        if module is None:
            patch.setattr(pulls_module, "native_reads", None)  # they know native tails only
        yield


def without_fast_path(store: MessageStore) -> MessageStore:
    """Lets all calls go the ordinary way."""
    appends = writer_of(store).appends
    appends._fast_path.close()
    appends.serve(NO_FAST_PATH)
    return store


def contents(root: Path) -> dict[str, bytes]:
    """Returns the bytes of all files of a closed store but the lock's."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name != "lock"
    }
