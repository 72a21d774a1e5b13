"""A message says what it said when it was read, after its store was closed, cut or deleted."""

from __future__ import annotations

import os
import shutil

import pytest

from seglog.storage.format.record import Message
from tests.support.material.stores import OpenStore

COUNT = 40
SEGMENT_BYTES = 4096


@pytest.fixture
def taken(open_store: OpenStore):
    """Returns an open store of several segments, and its messages."""
    store = open_store(segment_size_bytes=SEGMENT_BYTES)
    for number in range(COUNT):
        store.put("T", b"%d" % number * 90, tags=f"tag{number}", keys=["a", f"k{number}"])
    messages: list[Message] = []
    while len(messages) < COUNT:
        messages += store.get("T", 0, len(messages))
    assert len({message.phy_offset // SEGMENT_BYTES for message in messages}) > 1
    return store, messages


def said_by(messages: list[Message]) -> list[tuple[bytes, str | None, list[str], int]]:
    """Returns what messages say, each part asked for now."""
    return [(one.body, one.tags, one.keys, len(one.properties)) for one in messages]


EXPECTED = [(b"%d" % number * 90, f"tag{number}", ["a", f"k{number}"]) for number in range(COUNT)]


def assert_whole(messages: list[Message]) -> None:
    """Compares what messages say with what was put."""
    assert [said[:3] for said in said_by(messages)] == EXPECTED


def test_of_a_store_that_was_closed_and_deleted(tmp_path, taken):
    store, messages = taken
    store.close()
    shutil.rmtree(tmp_path / "store")
    assert_whole(messages)


def test_of_segments_that_another_process_cut_or_deleted(tmp_path, taken):
    _store, messages = taken
    segments = sorted((tmp_path / "store" / "commitlog").iterdir())
    for segment in segments[:-1]:
        os.truncate(segment, 0)
        segment.unlink()
    assert_whole(messages)


def test_what_was_read_and_not_yet_decoded_is_decoded_after_the_store_was_closed(tmp_path, taken):
    store, _messages = taken
    result = store.get("T", 0, 0, 8)
    iteration = iter(result)
    first = next(iteration)
    store.close()
    shutil.rmtree(tmp_path / "store")
    assert [first.body, *(message.body for message in iteration)] == [
        said[0] for said in EXPECTED[: len(result)]
    ]
    assert [message.tags for message in result.messages] == [said[1] for said in EXPECTED[: len(result)]]


def test_in_a_process_that_was_forked(taken):
    _store, messages = taken
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, b"whole" if [said[:3] for said in said_by(messages)] == EXPECTED else b"changed")
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        said = answer.read()
    assert os.waitpid(child, 0)[1] == 0
    assert said == b"whole"
    assert_whole(messages)
