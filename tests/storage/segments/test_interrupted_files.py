"""An interrupt while a file is created costs nothing but the call: the next one creates it."""

from __future__ import annotations

from pathlib import Path

import pytest
from typing_extensions import override

from seglog import MessageStore
from seglog.errors import StoreFailedError
from seglog.storage.files import RealFiles
from seglog.storage.files.real_file import RealFile

BODY = bytes(3000)


class InterruptedFiles(RealFiles):
    """Ctrl-C comes just when a file was created, once for each of these parts of paths."""

    def __init__(self, *parts: str) -> None:
        super().__init__()
        self.left = list(parts)

    @override
    def create(self, path: Path, size_bytes: int) -> RealFile:
        made = super().create(path, size_bytes)
        for part in self.left:
            if part in str(path):
                self.left.remove(part)
                made.close()
                raise KeyboardInterrupt
        return made


def test_files_that_an_interrupted_put_left_are_created_by_the_next(tmp_path: Path):
    files = InterruptedFiles("commitlog/00000000000000000000", "commitlog/00000000000000065536")
    stored, interrupts = [], 0
    with MessageStore.open(tmp_path, files=files, segment_size_bytes=65536) as store:
        while len(stored) < 60:
            try:
                stored.append(store.put("T", BODY).queue_offset)
            except KeyboardInterrupt:
                interrupts += 1
    assert (interrupts, files.left) == (2, [])
    assert stored == list(range(60))
    with MessageStore.open(tmp_path, read_only=True) as store:
        assert [message.queue_offset for message in store.get("T", 0, 0, 64)] == stored


def test_a_file_that_holds_something_is_not_replaced(tmp_path: Path):
    other = tmp_path / "commitlog" / "00000000000000065536"
    held = bytes(65535) + b"x"
    store = MessageStore.open(tmp_path, segment_size_bytes=65536)
    store.put("T", BODY)
    other.write_bytes(held)
    with pytest.raises(StoreFailedError, match="File exists"):
        fill(store)
    with pytest.raises(StoreFailedError, match="File exists"):
        store.close()
    assert other.read_bytes() == held


def fill(store: MessageStore):
    for _ in range(30):
        store.put("T", BODY)
