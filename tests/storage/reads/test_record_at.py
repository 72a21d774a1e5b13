"""A record by its place in the log: the bytes of the message, verified, and nothing else."""

from __future__ import annotations

import pytest

from seglog import MessageStore
from seglog.errors import NotFoundError
from seglog.storage.format.record import decode_message


def test_the_record_is_that_of_the_message_there_on_disk_and_before(tmp_path):
    with MessageStore.open(tmp_path, segment_size_bytes=1 << 16) as store:
        places = [store.put("T", b"m%d" % number, queue_id=0).phy_offset for number in range(3)]
        for number, place in enumerate(places):
            record = store.record_at(place)
            assert isinstance(record, bytes)
            assert decode_message(record, verify=True) == store.message_at(place)
            assert decode_message(record).body == b"m%d" % number
            assert len(record) == store.message_at(place).size_bytes
        log = next((tmp_path / "commitlog").iterdir()).read_bytes()
        assert log[places[1] : places[2]] == store.record_at(places[1])


@pytest.mark.parametrize("place", [-1, 1, 1 << 40])
def test_where_no_message_starts_there_is_no_record(tmp_path, place):
    with MessageStore.open(tmp_path, segment_size_bytes=1 << 16) as store:
        store.put("T", b"x", queue_id=0)
        with pytest.raises(NotFoundError, match=f"no message starts at {place}"):
            store.record_at(place)


def test_a_damaged_record_is_not_handed_out(tmp_path):
    with MessageStore.open(tmp_path, segment_size_bytes=1 << 16) as store:
        place = store.put("T", b"a body that is damaged", queue_id=0).phy_offset
        store.flush()
        path = next((tmp_path / "commitlog").iterdir())
        data = path.read_bytes()
        with path.open("r+b") as file:
            file.seek(data.index(b"damaged"))
            file.write(b"DAMAGED")
        with pytest.raises(NotFoundError):
            store.record_at(place)
