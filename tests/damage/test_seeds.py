"""Damages of the campaign that once broke a promise."""

from __future__ import annotations

import pytest

from tests.support.damage.trial import shared_patient, try_damage

SEEDS = [
    ("propcrc", 454),  # what is never read of a queue file looked like an address of filter data
    ("own with record CRC", 1271),  # the time of an index file's first entry
    ("roll", 1542),  # an empty backup of compaction positions, and no such file
    ("own of every kind", 1739),  # one byte of the name of the topic table
    ("own of every kind", 1741),  # a copy in a compaction log that differs from the commit log
    ("own of every kind", 1766),  # one byte of a queue.type, which the folder proves
    ("own of every kind", 1847),  # a digit of an offset in a further queue (LMQ)
    ("own of every kind", 3703),  # the separator behind such an offset became a digit
    ("own of every kind", 1912),  # keys of a record that its copy and the index know better
    ("own of every kind", 2387),  # a compaction unit that leads into the middle of a record
    ("own of every kind", 2038),  # a byte of noise in the name of the topic table
    ("real-conf", 680),  # a timer checkpoint of zeros
    ("own of every kind", 1163),  # one bit of a place made a hole of 4 PiB
]


@pytest.mark.parametrize(("name", "seed"), SEEDS)
def test_a_damage_that_once_broke_a_promise_breaks_none(name, seed, tmp_path):
    assert try_damage(shared_patient(name), tmp_path / str(seed), seed).broken == []
