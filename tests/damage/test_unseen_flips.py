"""How many flipped bits of a log go unnoticed: none with record CRCs, and how many without is measured."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest

from seglog.storage.store import MessageStore
from tests.support.material.stores import SEGMENT_BYTES, SMALL, SMALL_INDEX, new_clock
from tests.support.scale import chance, scaled

USUAL = {"UNIQ_KEY": "0A010203000000001234567890ABCDEF", "WAIT": "true", "CLUSTER": "DefaultCluster"}
"""What a Java client adds to each message."""


def make_store(root, *, record_crc):
    with MessageStore.open(root, clock=new_clock(), record_crc=record_crc, **SMALL, **SMALL_INDEX) as store:
        for number in range(20):
            body = random.Random(number).randbytes(128)
            store.put("Orders", body, queue_id=number % 2, tags="TagA", keys=f"k{number}", properties=USUAL)


def served(store):
    """Returns whole records by place in the queue: a time stamp that is wrong is wrong for every reader."""
    return {
        (queue.topic, queue.queue_id, offset): record.tobytes()
        for queue in store.queues()
        for offset in range(queue.min_offset, queue.max_offset)
        for record in store.get(queue.topic, queue.queue_id, offset, 1).records
    }


def flips_of(records, count):
    """Returns places and bits of the records, in the log."""
    every = [
        (int.from_bytes(record[28:36]) + byte, bit)
        for record in records.values()
        for byte in range(len(record))
        for bit in range(8)
    ]
    return every if count >= len(every) else chance("unseen flips").sample(every, count)


@pytest.mark.parametrize(("record_crc", "most"), [(True, 0.0), (False, 0.45)])
def test_share_of_flips_that_change_what_is_served_and_that_nothing_reports(
    memory_path: Path, record_testsuite_property, record_crc, most
):
    root = memory_path / "store"
    make_store(root, record_crc=record_crc)
    with MessageStore.open(root, read_only=True, clock=new_clock()) as reader:
        truth = served(reader)
    flips = flips_of(truth, scaled(500, 1 << 30))
    unseen = 0
    for phy_offset, bit in flips:
        position = phy_offset % SEGMENT_BYTES
        path = root / "commitlog" / f"{phy_offset - position:020d}"
        content = path.read_bytes()
        flipped = bytes([content[position] ^ 1 << bit])
        path.write_bytes(content[:position] + flipped + content[position + 1 :])
        with MessageStore.open(root, read_only=True, clock=new_clock()) as reader:
            unseen += not reader.recovery.findings and served(reader) != truth
        path.write_bytes(content)
    store = "with record CRC" if record_crc else "without record CRC"
    record_testsuite_property(f"flips, {store}", len(flips))
    record_testsuite_property(f"flips unseen, {store}", unseen)
    # The limit is of the share of all flips; a sample may differ from it by three standard errors.
    assert unseen <= most * len(flips) + 3 * math.sqrt(most * (1 - most) * len(flips))
    assert record_crc or unseen > 0, "the measure sees what is unseen"
