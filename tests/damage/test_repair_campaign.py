"""Random damage to five stores is repaired, and undone bit for bit; what is lost is named by its id."""

from __future__ import annotations

import random
import shutil
from collections import Counter

import pytest

from seglog.doctor.repair import FileSizes, plan_repair, repair_store
from seglog.doctor.undo import undo_repair
from seglog.errors import NotFoundError
from seglog.storage.files import RealFiles
from seglog.storage.findings import Severity
from seglog.storage.format.index import IndexGeometry
from seglog.storage.format.names import LOCK_FILE
from seglog.storage.format.properties import CRC_NAME
from seglog.storage.store import MessageStore
from tests.support.campaign import COMPACTED, KINDS, Outcome, judge, read_records
from tests.support.golden import tree_digest
from tests.support.scale import scaled
from tests.support.stores import QUEUE_FILE_BYTES, new_clock
from tests.support.subjects import SUBJECTS, make_subject

PARTS = range(scaled(5, 40))
EACH = scaled(20, 100)
"""Damages in a part of the campaign: 500 in all, 20,000 in full."""


@pytest.fixture(scope="module", params=SUBJECTS)
def subject(request, tmp_path_factory):
    return make_subject(request.param, tmp_path_factory.mktemp("subject"))


@pytest.fixture
def sizes(subject):
    """What the configuration of the store says of files of which the damage may leave none."""
    is_ours = subject.root.name in {"store", "killed"}
    if is_ours:
        return FileSizes(QUEUE_FILE_BYTES, IndexGeometry(50, 200))
    return FileSizes(2000, IndexGeometry(500, 2000))


def declared(plan):
    return {
        (one.topic, one.queue_id, offset)
        for action in plan.actions
        for one in action.lost
        for offset in one.offsets
    }


def is_record(store, phy_offset):
    try:
        store.message_at(phy_offset)
    except NotFoundError:
        return False
    return True


def undeclared(subject, plan, served, store):
    """Returns the records that are gone although the plan does not name them.

    Without record CRC a damaged topic, queue or transaction passes every check: such a record is served where
    it says, or has no place in a queue.
    """
    said = declared(plan)
    return {
        key
        for key in subject.records.keys() - served.keys()
        if key[0] != COMPACTED and key[2] >= store.min_phy_offset
        if (key[0], key[1], subject.records[key].next_offset - 1) not in said
        if subject.has_record_crc or not is_record(store, key[2])
    }


def changed_under_crc(outcome, served):
    """Returns the records that are served otherwise although they carry a record CRC.

    Damage to the checksum property itself makes a record like those that were written without.
    """
    return {key for key in outcome.changed if CRC_NAME in served[key].properties}


def digest_under_lock(root):
    """Returns what undo gives back: everything but the lock, in which each holder leaves its mark."""
    return {name: digest for name, digest in tree_digest(root).items() if name != LOCK_FILE}


def suffer_and_mend(subject, copy, seed, sizes):
    """Damages, repairs and undoes; returns what became of the messages, and what broke a promise."""
    files, clock = RealFiles(), new_clock()
    shutil.copytree(subject.root, copy)
    chance = random.Random(seed)
    kind = chance.choice(sorted(KINDS))
    outcome = Outcome(KINDS[kind](subject, copy, chance))
    outcome.hit = subject.hits(copy)
    before = digest_under_lock(copy)
    plan, pack = repair_store(files, copy, clock, lambda _plan: True, sizes)
    broken = []
    again = plan_repair(files, copy, clock, sizes)
    losses = [one for one in again.findings if one.severity is Severity.LOSS]
    if losses:
        broken.append(f"losses left: {losses}")
    if again.changes:
        broken.append(f"not done: {again.actions}")
    with MessageStore.open(copy, read_only=True, clock=clock) as store:
        served = read_records(store)
        judge(subject, outcome, served, store)
        outcome.silent.clear()
        for (topic, queue_id), end in subject.ends.items():
            if store.max_offset(topic, queue_id) < end:
                outcome.given_again.append((topic, queue_id))
        silent = undeclared(subject, plan, served, store)
    if silent:
        broken.append(f"not told: {sorted(silent)}")
    if not outcome.is_good:
        broken.append(str(outcome))
    if pack is not None:
        undo_repair(files, copy)
    if digest_under_lock(copy) != before:
        broken.append("undo gives another store")
    under_crc = changed_under_crc(outcome, served)
    if under_crc:
        broken.append(f"served otherwise in spite of record CRC: {under_crc}")
    return plan, outcome, broken


@pytest.mark.parametrize("part", PARTS)
def test_random_damage_is_repaired_and_undone(
    subject, sizes, part, memory_path, request, record_testsuite_property
):
    bad, tally = [], Counter()
    for seed in range(part * EACH, (part + 1) * EACH):
        copy = memory_path / str(seed)
        plan, outcome, broken = suffer_and_mend(subject, copy, seed, sizes)
        tally.update(
            {
                "damages": 1,
                "repaired": bool(plan.changes),
                "messages hit": len(outcome.hit),
                "hit but whole again": len(outcome.whole),
                "declared lost": len(declared(plan)),
                "served otherwise": len(outcome.changed),
                "bits flipped back": sum(action.kind == "bit" for action in plan.actions),
                "findings left": len(plan.left),
            }
        )
        if broken:
            bad.append((seed, outcome.damage, broken))
        shutil.rmtree(copy)
    for name, count in tally.items():
        record_testsuite_property(f"{request.node.name}: {name}", count)
    assert bad == []
