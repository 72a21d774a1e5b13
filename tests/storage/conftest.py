"""A small store at a virtual clock, opened as often as a test likes and closed at its end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Unpack

import pytest

from seglog.clock import VirtualClock
from seglog.storage.store import MessageStore
from tests.support.material.stores import SMALL, SMALL_INDEX, OpenOptions, OpenStore, new_clock


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
