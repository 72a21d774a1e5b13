"""One bit of properties of a record without record CRC, alone or beside other damage: the laws of opening.

Only queue units and key index know such a bit, and random damage to a whole store hardly ever needs them.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from seglog.doctor.check.check import check_store
from seglog.doctor.repair.repair import repair_store
from seglog.storage.files.files import RealFiles
from tests.support.damage.campaign import COMPACTED, KINDS
from tests.support.damage.laws import Look, Questions, served_by
from tests.support.damage.subjects import shared_subject
from tests.support.damage.trial import before_repair
from tests.support.machine.shared import copy_tree
from tests.support.material.stores import new_clock
from tests.support.scale import chance, scaled

EACH = 12
ALONE = 2
"""One in so many has no further damage."""


def flip_property(subject, copy, draw):
    """Flips a bit of the properties of a message; returns what it did."""
    key = draw.choice([key for key in sorted(subject.records) if key[0] != COMPACTED])
    record = subject.records[key]
    end = record.phy_offset + record.size_bytes
    place, bit = end - 1 - draw.randrange(len(record.properties)), draw.randrange(8)
    first = place - place % subject.segment_size_bytes
    path = copy / "commitlog" / f"{first:020d}"
    content = bytearray(path.read_bytes())
    content[place - first] ^= 1 << bit
    path.write_bytes(content)
    return f"flip {place} bit {bit} of {key}"


@pytest.mark.parametrize("name", ["own killed", "own of every kind", "roll"])
def test_the_laws_of_opening_hold(name, memory_path: Path):
    subject = shared_subject(name)
    broken = []
    for seed in range(scaled(EACH, 1000)):
        draw = chance("properties", name, seed)
        copy = copy_tree(subject.root, memory_path / str(seed))
        damage = flip_property(subject, copy, draw)
        if seed % ALONE:
            damage += f" and {KINDS[draw.choice(sorted(KINDS))](subject, copy, draw)}"
        asked = Questions.about(subject, subject.hits(copy), draw)
        before = before_repair(subject, copy, asked, check_store(copy, clock=new_clock()))
        repair_store(RealFiles(), copy, new_clock(), lambda _plan: True, subject.sizes)
        served = served_by(copy, asked=asked)
        assert isinstance(served, Look)
        broken += [f"{seed}: {damage}: {one}" for one in before.broken_by(served)]
        shutil.rmtree(copy)
    assert not broken
