"""A damaged size is found with the bytes at hand, and called the same however much of them there is."""

from __future__ import annotations

import pytest

from seglog import MessageStore
from seglog.storage.format.record.record import FILLER
from seglog.storage.kernels.walk import QueueTable, Stop, walk

pytestmark = pytest.mark.usefixtures("kernels")

SEGMENT_BYTES = 1 << 20


@pytest.fixture(scope="module")
def segment(tmp_path_factory):
    root = tmp_path_factory.mktemp("store")
    with MessageStore.open(root, segment_size_bytes=SEGMENT_BYTES) as store:
        for number in range(3):
            store.put("T", bytes(2000), keys=f"k{number}")
        size = store.message_at(0).size_bytes
    return bytearray(next((root / "commitlog").iterdir()).read_bytes()), size


def walk_with_size(segment, size, window_bytes):
    damaged = bytearray(segment)
    FILLER.struct.pack_into(damaged, 0, size, FILLER.struct.unpack_from(segment)[1])
    return walk(memoryview(damaged)[:window_bytes], 0, SEGMENT_BYTES, QueueTable())


@pytest.mark.parametrize(
    ("size", "kind"),
    [
        pytest.param(500_000, "lengths", id="too large, within the segment"),
        pytest.param(SEGMENT_BYTES + 1, "size", id="too large for the segment"),
        pytest.param(90, "size", id="too small for any record"),
        pytest.param(-1, "size", id="negative"),
    ],
)
@pytest.mark.parametrize("window_bytes", [4096, 65536, SEGMENT_BYTES])
def test_damaged_size_is_damage_at_once_and_in_the_same_words(segment, size, kind, window_bytes):
    content, _size = segment
    found = walk_with_size(content, size, window_bytes)
    assert found.stop is Stop.DAMAGE
    assert found.damage == walk_with_size(content, size, SEGMENT_BYTES).damage
    assert found.damage.kind == kind


def test_whole_record_beyond_the_buffer_asks_for_more_wherever_it_is_cut(segment):
    content, size = segment
    for window_bytes in range(size):
        result = walk(memoryview(content)[:window_bytes], 0, SEGMENT_BYTES, QueueTable())
        assert (result.stop, len(result.rows)) == (Stop.MORE, 0)
