"""A small store at a virtual clock, opened as often as a test likes and closed at its end; folders."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Unpack

import pytest

from seglog.clock import VirtualClock
from seglog.storage.store import MessageStore
from tests.support.machine.memory_folder import in_memory
from tests.support.material.stores import SMALL, SMALL_INDEX, OpenOptions, OpenStore, new_clock


class Folders:
    """Makes folders within one."""

    def __init__(self, root: Path) -> None:
        self._root, self._numbers = root, itertools.count()

    def mktemp(self, name: str) -> Path:
        """Makes an empty folder that no other call returns."""
        made = self._root / f"{name}-{next(self._numbers)}"
        made.mkdir()
        return made


@pytest.fixture(scope="module")
def module_folders(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Folders]:
    """Folders for all tests of a module; they are in memory where those of a test are (``tmp_path``)."""
    is_asked = request.config.getoption("in_memory") and not request.node.get_closest_marker("on_disk")
    memory = in_memory(request.node.nodeid) if is_asked else None
    if memory is None:
        yield Folders(tmp_path_factory.mktemp("module"))
    else:
        with tempfile.TemporaryDirectory(dir=memory, ignore_cleanup_errors=True) as name:
            yield Folders(Path(name))


@pytest.fixture
def clock() -> VirtualClock:
    return new_clock()


@pytest.fixture
def open_store(tmp_path: Path, clock: VirtualClock) -> Iterator[OpenStore]:
    opened: list[MessageStore] = []

    def open_one(name: str = "store", **options: Unpack[OpenOptions]) -> MessageStore:
        has_files = (tmp_path / name / "commitlog").is_dir()
        made: OpenOptions = {"clock": clock, **SMALL_INDEX, **options}
        if not has_files and not options.get("read_only"):
            made = {**SMALL, **made}
        store = MessageStore.open(tmp_path / name, **made)
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        store.close()
