"""A record CRC follows its record to another place as if it were made there."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from seglog.spark.compact.crc_moves import move_crcs
from seglog.storage.format.record.record import PHY_OFFSET_AT, Damage, examine
from tests.support.material.records import Record


def test_moved_records_verify_and_damaged_ones_do_not():
    rng = random.Random(1)
    records, old, new = [], [], []
    for number in range(200):
        body = rng.randbytes(rng.choice([0, 1, 50, 700, 5000]))
        old.append(rng.randrange(1 << 50))
        new.append(rng.randrange(1 << 50))
        records.append(bytearray(replace(Record(), body=body, phy_offset=old[-1], record_crc=True).pack()))
        records[-1][PHY_OFFSET_AT : PHY_OFFSET_AT + 8] = new[-1].to_bytes(8, "big")
        if number % 10 == 0:
            records[-1][60] ^= 1  # in storeTimestamp, which only the record CRC covers
    sizes = np.array([len(record) for record in records])
    target = np.frombuffer(bytearray(b"".join(records)), np.uint8)
    places = np.cumsum(sizes) - sizes
    move_crcs(target, places, sizes, np.array(old), np.array(new))
    for number, at in enumerate(places.tolist()):
        found = examine(target.data, at, new[number])
        assert (found.kind if isinstance(found, Damage) else None) == (
            "record-crc" if number % 10 == 0 else None
        )
