"""With a record CRC no single flipped bit of the log goes unseen or costs more than the record it is in."""

from __future__ import annotations

import pytest

from seglog.storage.store import MessageStore
from tests.support import scale
from tests.support.material.stores import SEGMENT_BYTES, SMALL, SMALL_INDEX, new_clock, served
from tests.support.scale import chance, scaled

MESSAGES = 40


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A closed store of two segments, its messages, and each byte of its log."""
    root = tmp_path_factory.mktemp("flips") / "store"
    with MessageStore.open(root, clock=new_clock(), **SMALL, **SMALL_INDEX) as writer:
        for number in range(MESSAGES):
            writer.put("Topic", b"%d" % number * 7, queue_id=number % 2, tags="TagA", keys=f"k{number}")
        messages = [message for queue in served(writer).values() for message in queue]
    files = sorted((root / "commitlog").iterdir())
    return root, messages, [(path, path.read_bytes()) for path in files]


def bits(files):
    every = [(path, data, bit) for path, data in files for bit in range(8 * len(data))]
    count = scaled(700, len(every))
    return every if count == len(every) else chance("flipped bits").sample(every, count)


def check(root, messages, path, data, bit):
    flipped = bytearray(data)
    flipped[bit // 8] ^= 1 << bit % 8
    path.write_bytes(flipped)
    phy_offset = int(path.name) + bit // 8
    hit = [m for m in messages if m.phy_offset <= phy_offset < m.phy_offset + m.size_bytes]
    with MessageStore.open(root, read_only=True) as reader:
        found = [message for queue in served(reader).values() for message in queue]
        assert found == [message for message in messages if message not in hit], f"bit {bit} of {path.name}"
        if hit:
            assert reader.recovery.findings
    path.write_bytes(data)


def test_any_flipped_bit_costs_at_most_its_record_and_is_reported(store):
    root, messages, files = store
    for path, data, bit in bits(files):
        check(root, messages, path, data, bit)


def test_every_flipped_bit_of_one_record_is_seen(store):
    root, messages, files = store
    message = messages[3]
    path, data = files[message.phy_offset // SEGMENT_BYTES]
    start = message.phy_offset % SEGMENT_BYTES
    step = scaled(5, 1)
    first = 8 * start + scale.start(step, "flipped bits of a record")
    for bit in range(first, 8 * (start + message.size_bytes), step):
        check(root, messages, path, data, bit)
