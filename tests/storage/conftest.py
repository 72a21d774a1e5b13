"""A small store at a virtual clock, opened as often as a test likes and closed at its end."""

from __future__ import annotations

import pytest

from seglog.storage.store import MessageStore
from tests.support.stores import SMALL, SMALL_INDEX, new_clock


@pytest.fixture
def clock():
    return new_clock()


@pytest.fixture
def open_store(tmp_path, clock):
    opened = []

    def open_one(name="store", **options):
        has_files = (tmp_path / name / "commitlog").is_dir()
        lengths = {} if has_files or options.get("read_only") else SMALL
        store = MessageStore.open(tmp_path / name, **({"clock": clock} | SMALL_INDEX | lengths | options))
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        store.close()
