"""An append that is interrupted at any line gives no queue offset twice, and changes none that was given."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import seglog
from seglog import Durability, MessageStore, NewMessage
from tests.support.scale import strides

PACKAGE = str(Path(seglog.__file__).parent / "storage")
SIZES: dict[str, Any] = {"segment_size_bytes": 1 << 16, "queue_file_size_bytes": 400}


class Interrupted(BaseException):
    """What a signal handler raises."""


class Interrupter:
    """Raises at one of the points at which Python calls a signal handler, and counts them.

    These are the begin of a function in Python and the return of a function in C.
    """

    def __init__(self, at: int) -> None:
        self.at = at
        self.seen = 0

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if event in ("call", "c_return") and frame.f_code.co_filename.startswith(PACKAGE):
            self.seen += 1
            if self.seen == self.at:
                raise Interrupted

    def during(self, call: Callable[[], object]) -> bool:
        """Returns whether the call was interrupted."""
        gc.disable()  # what earlier stores left is not to be interrupted
        sys.setprofile(self)
        try:
            call()
        except Interrupted:
            pass
        finally:
            sys.setprofile(None)
            gc.enable()
        return self.seen >= self.at


APPENDS: dict[str, Callable[[MessageStore], object]] = {
    "of an old queue": lambda store: store.append("T", 0, b"interrupted", b"", 0, delay_ms=5),
    "of a new queue": lambda store: store.put("New", b"interrupted", tags="t", keys="k"),
    "on the disk": lambda store: store.put("T", b"interrupted", durability=Durability.SYNC),
    "of many": lambda store: store.put_batch("T", [NewMessage(b"interrupted", "t")] * 30),
    "of many that are long": lambda store: store.put_batch("T", [b"interrupted" * 300] * 15),
    "of a batch queue": lambda store: store.put_batch("Batch", [b"interrupted"] * 3),
}


def fill(root: Path) -> dict[tuple[str, int], bytes]:
    with MessageStore.open(root, **SIZES) as store:
        return {("T", store.put("T", b"%d" % number).queue_offset): b"%d" % number for number in range(17)}


def contents(store: MessageStore) -> dict[tuple[str, int], bytes]:
    found: dict[tuple[str, int], bytes] = {}
    for queue in store.queues():
        at = queue.min_offset
        while at < queue.max_offset:
            result = store.get(queue.topic, queue.queue_id, at, 64)
            assert not result.lost
            for message in result:
                assert (queue.topic, message.queue_offset) not in found
                found[queue.topic, message.queue_offset] = message.body
            at = result.next_offset
    return found


@pytest.mark.parametrize("name", APPENDS)
def test_an_append_that_is_interrupted_anywhere_leaves_every_offset_its_message(name: str, tmp_path: Path):
    for at in strides(1, 13, 1, "interrupted", name):
        root = tmp_path / str(at)
        acknowledged = fill(root)
        with MessageStore.open(root, **SIZES) as store:
            is_interrupted = Interrupter(at).during(partial(APPENDS[name], store))
            for topic in ("T", "New", "T"):
                acknowledged[topic, store.put(topic, b"after").queue_offset] = b"after"
            before = contents(store)
        assert acknowledged.items() <= before.items(), at
        with MessageStore.open(root, **SIZES) as store:
            assert contents(store) == before, at
        if not is_interrupted:
            break
