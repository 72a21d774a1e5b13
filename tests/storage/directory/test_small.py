"""A new store may have short files; one that exists keeps the lengths that it has."""

from __future__ import annotations

import os

from seglog import Broker, MessageStore, Producer
from seglog.doctor.check import check_store
from seglog.storage.directory import StoreGeometry

SMALL = StoreGeometry(segment_size_bytes=16 << 20, queue_file_size_bytes=120_000)
LONGEST_BODY = b"x" * (4 << 20)


def sizes(root):
    """Returns the length of each file below ``root``, by its path."""
    files = (file for file in root.rglob("*") if file.is_file())
    return {os.fspath(file.relative_to(root)): file.stat().st_size for file in files}


def test_a_small_store_has_no_file_above_16_mib_and_is_whole(tmp_path):
    with MessageStore.open(tmp_path / "s", small=True) as store:
        for number in range(9):
            store.put("orders", LONGEST_BODY, keys=f"k{number}")
        assert store.geometry == SMALL
    found = sizes(tmp_path / "s")
    assert max(found.values()) == 16 << 20
    assert found["consumequeue/orders/0/00000000000000000000"] == 120_000
    (index,) = (size for name, size in found.items() if name.startswith("index/"))
    assert index == 40 + 4 * 50_000 + 20 * 200_000
    assert check_store(tmp_path / "s").is_clean


def test_its_lengths_are_those_of_the_store_from_then_on(tmp_path):
    for small in (True, False, True):
        with MessageStore.open(tmp_path / "s", small=small) as store:
            store.put("orders", b"x", keys="k")
            assert store.geometry == SMALL
    assert len([name for name in sizes(tmp_path / "s") if name.startswith("index/")]) == 1


def test_a_store_that_exists_keeps_its_long_files(tmp_path):
    with MessageStore.open(tmp_path / "s") as store:
        store.put("orders", b"x")
    with MessageStore.open(tmp_path / "s", small=True) as store:
        store.put("orders", b"x", keys="k")  # the first with a key makes the index
        assert store.geometry == StoreGeometry()
    assert max(sizes(tmp_path / "s").values()) == 1 << 30
    index = [size for name, size in sizes(tmp_path / "s").items() if name.startswith("index/")]
    assert index == [40 + 4 * 5_000_000 + 20 * 20_000_000]


def test_a_length_that_is_given_counts_before_the_small_one(tmp_path):
    with MessageStore.open(tmp_path / "s", small=True, segment_size_bytes=1 << 20) as store:
        assert store.geometry == StoreGeometry(1 << 20, 120_000)


def test_a_small_broker_takes_what_any_takes(tmp_path):
    with Broker.open(tmp_path / "s", small=True) as broker:
        with Producer(broker, "p") as producer:
            sent = producer.send("orders", LONGEST_BODY, keys="k")
        assert broker.store.geometry == SMALL
        (message,) = broker.store.get("orders", sent.queue.queue_id, sent.queue_offset)
        assert message.body == LONGEST_BODY
    assert max(sizes(tmp_path / "s").values()) == 16 << 20
