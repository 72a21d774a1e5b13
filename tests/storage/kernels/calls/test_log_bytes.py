"""What native reads hand out: parts of the map of a file, which are used as memoryviews are."""

from __future__ import annotations

import gc
import pickle
import struct
import weakref
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.storage.format.get_status import GetStatus
from seglog.storage.reads.get import GetResult
from seglog.storage.reads.message_filter import TagFilter
from tests.support.machine.kernels import native
from tests.support.material.records import Record

FILE_BYTES = 1 << 12
RECORDS = [Record(queue_offset=number, body=b"body %d" % number) for number in range(4)]


def part_of(memory: bytearray | memoryview, count: int = 1) -> list[memoryview]:
    """Returns records that a native read found in a file of the log."""
    log, queue = native().Maps(FILE_BYTES), native().Maps(20 * len(RECORDS))
    log.set(0, memoryview(memory).toreadonly(), None)
    places, at = [], 0
    for record in RECORDS:
        size = len(record.pack())
        places.append(struct.pack(">qiq", at, size, 0))
        at += size
    queue.set(0, memoryview(b"".join(places)), None)
    reads = native().Reads(
        GetResult,
        TagFilter,
        GetStatus.FOUND,
        GetStatus.NO_MATCHED_MESSAGE,
        native().LogTail(at, -1, 0, 0),
        log,
        (32, 1 << 20, 32),
    )
    reads.add("T", 0, native().QueueTail(0, len(RECORDS), at), queue)
    found = reads.try_get("T", 0, 0, count)
    assert found is not None
    records: list[memoryview] = found.records
    return records


@pytest.fixture
def memory() -> bytearray:
    packed = b"".join(record.pack() for record in RECORDS)
    return bytearray(packed.ljust(FILE_BYTES, b"\0"))


@pytest.fixture
def part(memory: bytearray) -> memoryview:
    (one,) = part_of(memory)
    assert type(one) is native().LogBytes
    return one


STORED = RECORDS[0].pack()
USES: dict[str, Callable[[memoryview], object]] = {
    "length": len,
    "bytes": bytes,
    "tobytes": lambda view: view.tobytes(),
    "hex": lambda view: view.hex(),
    "nbytes and shape": lambda view: (view.nbytes, view.shape, view.strides, view.format, view.itemsize),
    "what it is": lambda view: (view.readonly, view.contiguous, view.ndim, isinstance(view, memoryview)),
    "numbers": list,
    "backwards": lambda view: list(reversed(view)),
    "first and last": lambda view: (view[0], view[-1]),
    "slice": lambda view: bytes(view[3:9]),
    "steps": lambda view: view[::7].tolist(),
    "is in it": lambda view: (0xDA in view, 300 in view),
    "hash": hash,
    "hash of a view of it": lambda view: hash(memoryview(view)),
    "equal": lambda view: (view == STORED, view == STORED[:-1], view != STORED, view in {STORED, 7}),
    "equal from the other side": lambda view: (
        memoryview(STORED) == view,
        bytearray(view) == STORED,
    ),
    "joined": lambda view: b"-".join([view, view]),
    "numpy": lambda view: np.frombuffer(view, np.uint8).sum(),
    "cast": lambda view: view[:8].cast("I").tolist(),
    "number": lambda view: int.from_bytes(view[:4], "big"),
}


@pytest.mark.parametrize("use", USES)
def test_what_a_read_gives_is_used_as_a_memoryview_is(part, use):
    assert USES[use](part) == USES[use](memoryview(STORED))


REFUSED: dict[str, tuple[Callable[[memoryview], object], type[Exception]]] = {
    "behind the end": (lambda view: view[len(view)], IndexError),
    "before the start": (lambda view: view[-len(view) - 1], IndexError),
    "by name": (lambda view: view["a"], TypeError),  # type: ignore[call-overload]
    "what it has not": (lambda view: view.nothing, AttributeError),  # type: ignore[attr-defined]
    "order": (lambda view: view < STORED, TypeError),  # type: ignore[operator]
    "pickled": (pickle.dumps, TypeError),
}


@pytest.mark.parametrize("use", REFUSED)
def test_what_a_memoryview_refuses_it_refuses(part, use):
    wrong, error = REFUSED[use]
    for view in (memoryview(STORED), part):
        with pytest.raises(error):
            wrong(view)


def test_nobody_writes_to_the_log_through_it(part, memory):
    before = bytes(memory)
    with pytest.raises(TypeError):
        part[0] = 1
    with pytest.raises(TypeError):
        memoryview(part)[0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        np.frombuffer(part, np.uint8).setflags(write=True)
    assert bytes(memory) == before


KEPT: dict[str, Callable[[memoryview], object]] = {
    "itself": lambda one: one,
    "memoryview": memoryview,
    "slice": lambda one: one[2:4],
    "numpy": lambda one: np.frombuffer(one, np.uint8),
    "map": lambda one: map(chr, one),
}


@pytest.mark.parametrize("kept", KEPT)
def test_the_memory_stays_as_long_as_somebody_has_a_part_of_it(memory, kept):
    held = KEPT[kept](part_of(memory)[0])
    gc.collect()
    with pytest.raises(BufferError):
        memory.append(0)
    del held
    memory.append(0)


def test_a_view_that_its_owner_wants_back_is_not_given_back_while_a_part_of_it_lives(memory):
    view = memoryview(memory).toreadonly()
    (one,) = part_of(view)
    assert one == STORED
    del one
    view.release()


def test_it_can_be_referred_to_weakly_until_it_is_gone(memory):
    (one,) = part_of(memory)
    gone = weakref.ref(one)
    assert gone() is one
    del one
    assert gone() is None


@given(st.lists(st.tuples(st.integers(1, 4), st.booleans()), min_size=1, max_size=40))
def test_objects_that_are_used_again_show_only_what_they_were_made_for(steps):
    """More are made than are kept for later use, and in any order."""
    packed = b"".join(record.pack() for record in RECORDS)
    memory = bytearray(packed.ljust(FILE_BYTES, b"\0"))
    held: list[list[memoryview]] = []
    for count, gives_up in steps:
        held.append(part_of(memory, count))
        if gives_up:
            held.pop(len(held) // 2)
    for parts in held:
        assert parts == [record.pack() for record in RECORDS[: len(parts)]]


def test_more_of_them_than_are_kept_for_later_come_and_go(memory):
    held = [part_of(memory, 4) for _ in range(600)]
    assert all(parts == [record.pack() for record in RECORDS] for parts in held)
    del held
    assert part_of(memory, 4) == [record.pack() for record in RECORDS]
