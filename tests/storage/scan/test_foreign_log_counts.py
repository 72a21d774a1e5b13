"""A log file of another broker, and damaged units: check, plan and repaired store count the same."""

from __future__ import annotations

import random
import shutil

import pytest

from seglog.doctor.check.check import check_store
from seglog.doctor.check.triage import verdict_on
from seglog.doctor.repair.repair import plan_repair, repair_store
from seglog.storage.files.files import RealFiles
from tests.support.material import golden, rocksdb_stores
from tests.support.material.stores import copy_store, new_clock
from tests.support.scale import scaled

FIRST = "0" * 20


@pytest.fixture(scope="module")
def replaced(tmp_path_factory):
    """A store of RocketMQ whose only log file is one of another broker, which has some of its queues."""
    folder = tmp_path_factory.mktemp("replaced")
    root = rocksdb_stores.extract(rocksdb_stores.FILES, folder)
    for path in (root / "commitlog").iterdir():
        path.unlink()
    shutil.copyfile(golden.shared("real-conf") / "commitlog" / FIRST, root / "commitlog" / FIRST)
    return root


def lost(root):
    """Returns the losses that a check counts, with whether they may be more."""
    verdict = verdict_on(check_store(root, clock=new_clock()))
    return verdict.lost, verdict.is_at_least


def demand_one_count(root):
    """Checks, plans and repairs a store; returns the one count of lost messages."""
    found = lost(root)
    plan = plan_repair(RealFiles(), root, new_clock())
    assert (plan.lost, bool(plan.doubt)) == found
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert lost(root)[0] == found[0]
    return found[0]


def test_a_record_of_the_other_broker_says_nothing_about_the_order_of_these(replaced, tmp_path):
    root = copy_store(replaced, tmp_path / "store")
    # All of the store's messages but the two whose queue offsets the other broker's file has as well.
    assert demand_one_count(root) == 200 - 2


def test_a_damaged_unit_refutes_none_of_the_others(replaced, tmp_path):
    root = copy_store(replaced, tmp_path / "store")
    path = root / "consumequeue/TxTopic/0" / FIRST
    data = bytearray(path.read_bytes())
    data[1510] ^= 0x55  # 21,760 bytes long, at the place of the first message
    path.write_bytes(data)
    assert demand_one_count(root) == 200 - 2 - 17  # what TxTopic had behind the end is proven no more


@pytest.mark.parametrize("seed", range(scaled(6, 60) + 2))
def test_any_damaged_units_leave_one_count(seed, replaced, tmp_path):
    draws = random.Random(seed)
    root = copy_store(replaced, tmp_path / "store")
    for _damage in range(draws.randint(1, 3)):
        path = draws.choice(sorted((root / "consumequeue").glob("*/*/*")))
        data = bytearray(path.read_bytes())
        data[draws.randrange(min(len(data), 1_600))] ^= draws.randint(1, 255)
        path.write_bytes(data)
    demand_one_count(root)
