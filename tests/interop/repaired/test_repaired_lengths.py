"""RocketMQ 5.4.0 and 5.5.1 open repaired stores with the lengths that they had, and serve each message.

Every store is one random damage, of the campaign's kinds or to lengths and names of files, repaired
without options where that is possible. A repair that ends well must leave a store with which RocketMQ starts;
one that cannot know a length must say so, and then be told.
"""

from __future__ import annotations

import random
import shutil

import pytest

from seglog.doctor.repair.repair import repair_store
from seglog.errors import LengthUnknownError
from seglog.storage.directory.geometry import FileSizes
from seglog.storage.files.files import RealFiles
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.record.tombstone import LOST
from tests.interop.judging import toolchain
from tests.interop.judging.judge import Judge
from tests.interop.judging.lines import differences, place
from tests.interop.judging.questions import SMALL_GEOMETRY
from tests.interop.repaired.test_repaired import ends, lost_in
from tests.support.damage.campaign import KINDS
from tests.support.damage.length_damage import LENGTH_KINDS
from tests.support.damage.subjects import make_subject
from tests.support.damage.trial import is_all_gone
from tests.support.material import golden
from tests.support.material.stores import new_clock
from tests.support.scale import is_full

pytestmark = pytest.mark.interop

STORES = ("roll", "tx", "propcrc", "delay", "ipv6")
"""Three of them have a single log file."""
VERSIONS = (toolchain.DEFAULT_VERSION, toolchain.NEWEST_VERSION)
INDEX = IndexGeometry(SMALL_GEOMETRY.index_slots, SMALL_GEOMETRY.index_entries)
GIVEN = FileSizes(SMALL_GEOMETRY.queue_file_size_bytes, INDEX, SMALL_GEOMETRY.segment_size_bytes)
DAMAGES = LENGTH_KINDS | KINDS
WITHOUT_COST = LENGTH_KINDS.keys() - {"empty last"}


@pytest.fixture(scope="module")
def judges(judge: Judge):
    with Judge(toolchain.NEWEST_VERSION) as newest:
        newest.build()
        yield {toolchain.DEFAULT_VERSION: judge, toolchain.NEWEST_VERSION: newest}


@pytest.fixture(scope="module")
def subjects(tmp_path_factory):
    return {name: make_subject(name, tmp_path_factory.mktemp(name)) for name in STORES}


def damaged(subject, root, chance, kind):
    """Damages a copy of a store so that something of its log is left, and returns what was done."""
    while True:
        shutil.copytree(subject.root, root)
        done = DAMAGES[kind](subject, root, chance)
        if not is_all_gone(subject, root) or kind in LENGTH_KINDS:
            return done
        shutil.rmtree(root)


def repaired(root):
    """Repairs a store; says nothing of its lengths until it is asked."""

    def repair(sizes):
        return repair_store(RealFiles(), root, new_clock(), lambda _plan: True, sizes)[0]

    try:
        plan = repair(FileSizes(index=INDEX))
    except LengthUnknownError:
        return repair(GIVEN)
    is_asked = any(finding.code == "queue-length-unknown" for finding in plan.left)
    return repair(GIVEN) if is_asked else plan


def check(judge, root, whole, lost, touched, *, is_campaign):
    """Lets the real store open a repaired copy, and holds each message that it serves against the truth.

    Args:
        judge: The real store.
        root: The copy.
        whole: What it served of the undamaged store.
        lost: Topic, queue and offset of the messages that the repair gave up.
        touched: Places in the log of the records whose bytes the damage changed. Without record CRC nothing
            covers what is outside of their bodies.
        is_campaign: Whether the damage was one of the campaign's kinds.
    """
    dump = judge.dump(root, SMALL_GEOMETRY)
    assert dump.refusal is None
    start = min(int(path.name) for path in (root / "commitlog").iterdir())
    messages = [line for line in whole if line["kind"] == "msg" and line["cqPos"] >= start]
    intact = {place(line): line for line in messages if place(line) not in lost}
    served = {place(line): line for line in dump.of_kind("msg")}
    strict = [line for line in intact.values() if line["cqPos"] not in touched]
    found = [served[place(line)] for line in strict if place(line) in served]
    # Nothing covers the due time in the unit of a delayed message.
    due = ["tagsCode"] if is_campaign else []
    assert differences(strict, found, ignoring=["keyFound", *due]) == []
    others = [line for at, line in served.items() if at not in intact]
    for line in intact.values():
        if line["cqPos"] in touched and place(line) in served:
            assert served[place(line)]["bodySha256"] == line["bodySha256"]
    assert all(LOST in line["properties"] or line["cqPos"] in touched for line in others)
    if not touched:
        assert ends(dump.lines) == ends(whole)
        assert len(others) == len(lost)


@pytest.mark.parametrize("seed", range(300 if is_full() else 12))
@pytest.mark.sampled(3)
def test_rocketmq_starts_on_a_repaired_store_and_serves_every_message(judges, subjects, seed, tmp_path):
    chance = random.Random(seed)
    kind = sorted(LENGTH_KINDS)[seed % len(LENGTH_KINDS)] if seed % 3 else chance.choice(sorted(KINDS))
    name = STORES[seed % len(STORES)]
    root = tmp_path / "store"
    done = damaged(subjects[name], root, chance, kind)
    record_crc = subjects[name].has_record_crc
    is_campaign = kind not in LENGTH_KINDS
    touched = set() if record_crc or not is_campaign else {key[2] for key in subjects[name].hits(root)}
    plan = repaired(root)
    assert plan.left == [], done
    assert kind not in WITHOUT_COST or not lost_in(plan), done
    for version in VERSIONS:
        for_java = tmp_path / version
        shutil.copytree(root, for_java)
        whole, lost = golden.expected(name), lost_in(plan)
        check(judges[version], for_java, whole, lost, touched, is_campaign=is_campaign)
