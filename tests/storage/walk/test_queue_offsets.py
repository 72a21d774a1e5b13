"""One flipped bit in a record's queue offset costs that record at most, and never the store."""

from __future__ import annotations

import shutil

import pytest

from seglog.storage.files.files import RealFiles
from seglog.storage.format.record.record import HEAD_V4
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from tests.support.material.golden import extract, shared
from tests.support.material.stores import served

QUEUE_OFFSET_AT = HEAD_V4.offsets["queue_offset"]


@pytest.fixture(scope="module")
def whole():
    """Where the records of the queue TopicA/0 of the store without record CRCs are, and all bodies."""
    found = survey(shared("roll"), RealFiles())
    with MessageStore.open(shared("roll"), read_only=True) as store:
        bodies = {key: [message.body for message in messages] for key, messages in served(store).items()}
    return found.queues["TopicA", 0].units["phy_offset"].tolist(), bodies


@pytest.fixture
def roll(whole, tmp_path):
    return extract("roll", tmp_path), whole[0]


def flip(root, phy_offset: int, bit: int) -> None:
    path = root / "commitlog" / f"{phy_offset // 65536 * 65536:020d}"
    data = bytearray(path.read_bytes())
    at = phy_offset % 65536 + QUEUE_OFFSET_AT + 7 - bit // 8
    data[at] ^= 1 << bit % 8
    path.write_bytes(data)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("number", [0, 1, 4, 16, 32, 33], ids=lambda number: f"message {number}")
@pytest.mark.parametrize("bit", [0, 2, 4, 5, 6, 20, 40, 62], ids=lambda bit: f"bit {bit}")
def test_the_queue_file_tells_where_the_record_belongs(roll, whole, number, bit):
    root, places = roll
    flip(root, places[number], bit)
    found = survey(root, RealFiles())
    queue = found.queues["TopicA", 0]
    assert [len(queue.units), queue.units["phy_offset"].tolist()] == [34, places]
    for read_only in (True, False):
        with MessageStore.open(root, read_only=read_only) as store:
            after = served(store)
            assert {key: [m.body for m in messages] for key, messages in after.items()} == whole[1]
            assert [message.queue_offset for message in after["TopicA", 0]] == list(range(34))


@pytest.mark.parametrize("number", [0, 1, 16, 33], ids=lambda number: f"message {number}")
@pytest.mark.parametrize("bit", [12, 20, 40, 62], ids=lambda bit: f"bit {bit}")
def test_without_queue_files_its_neighbours_tell(roll, number, bit):
    root, places = roll
    flip(root, places[number], bit)
    shutil.rmtree(root / "consumequeue")
    queue = survey(root, RealFiles()).queues["TopicA", 0]
    assert queue.units["phy_offset"].tolist() == places
    assert [finding.code for finding in queue.findings].count("record-queue-offset") == 1


def test_a_topic_made_again_is_no_damage(tmp_path):
    root = tmp_path / "store"
    with MessageStore.open(root, segment_size_bytes=65536, record_crc=False) as store:
        for number in range(8):
            store.put("T", b"old %d" % number)
    shutil.rmtree(root / "consumequeue" / "T")
    with MessageStore.open(root) as store:
        assert store.max_offset("T", 0) == 8
        assert store.recovery.findings[0].code == "queue-missing"
