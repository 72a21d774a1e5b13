"""What a repair brings back is named repairable, and only the rest lost, by all who say either."""

from __future__ import annotations

import json

import pytest

from seglog import MessageStore
from seglog.doctor.check.check import check_store
from seglog.doctor.repair.repair import plan_repair
from seglog.storage.files.files import RealFiles
from tests.doctor.check.test_lengths import SEGMENT, log_files
from tests.support.damage.treatment import run
from tests.support.material import golden
from tests.support.material.stores import new_clock


def flip(root, phy_offset, at=60, mask=1):
    path = log_files(root)[phy_offset // SEGMENT]
    data = bytearray(path.read_bytes())
    data[phy_offset % SEGMENT + at] ^= mask
    path.write_bytes(data)


def places(root):
    """Returns where the records of a store lie, in log order."""
    with MessageStore.open(root, read_only=True, clock=new_clock()) as store:
        queues = [store.get(queue.topic, queue.queue_id, 0, 9999) for queue in store.queues()]
        return sorted({one.phy_offset for queue in queues for one in queue})


def of_reader(root):
    """Returns the queue offsets that a reader steps over, by what it calls them."""
    named = {"lost": set(), "repairable": set()}
    with MessageStore.open(root, read_only=True, clock=new_clock()) as store:
        for queue in store.queues():
            at = queue.min_offset
            while at < queue.max_offset:
                found = store.get(queue.topic, queue.queue_id, at, 1000)
                for kind, ranges in (("lost", found.lost), ("repairable", found.repairable)):
                    named[kind] |= {(queue.topic, queue.queue_id, one) for run in ranges for one in run}
                if found.next_offset <= at:
                    break
                at = found.next_offset
    return named


def of_dump(root):
    named = {"lost": set(), "repairable": set()}
    for line in map(json.loads, run("dump", "--json", root)[1].splitlines()):
        if line["kind"] in {"lost", "repairable"}:
            offsets = range(line["firstOffset"], line["firstOffset"] + line["count"])
            named[line["kind"]] |= {(line["topic"], line["queueId"], one) for one in offsets}
    return named


def of_findings(findings):
    """Returns how many messages findings call lost, and how many records repairable."""
    holes = {"log-hole", "log-file-missing", "messages-lost"}
    lost = sum(one["messages"] for one in findings if one["code"] in holes)
    return lost, sum(one["code"] == "record-repairable" for one in findings)


def hold(root, lost, repairable):
    """Holds all commands' words for what a store misses against each other."""
    assert (len(of_reader(root)["lost"]), len(of_reader(root)["repairable"])) == (lost, repairable)
    assert of_dump(root) == of_reader(root)
    plan = plan_repair(RealFiles(), root, new_clock())
    assert sum(action.lost_messages for action in plan.actions) == lost
    report = check_store(root, clock=new_clock())
    assert report.lost_messages == lost
    lines = [json.loads(line) for line in run("check", "--json", root)[1].splitlines()]
    assert of_findings([line for line in lines if line["kind"] == "finding"]) == (lost, repairable)
    assert of_findings(json.loads(run("info", "--verify", "--json", root)[1])["findings"]) == (
        lost,
        repairable,
    )
    target = root.parent / "out.jsonl"
    fields = json.loads(run("export", "--json", root, "-o", target)[1])
    assert (fields["lost"], fields["repairable"]) == (lost, repairable)


@pytest.mark.parametrize("number", [0, 57, 201, -1])
def test_a_record_with_one_flipped_bit_is_repairable_to_all(number, tmp_path):
    root = golden.extract("roll", tmp_path)
    flip(root, places(root)[number], 3)
    hold(root, 0, 1)


def test_lost_and_repairable_messages_of_one_store_are_told_apart(tmp_path):
    root = golden.extract("roll", tmp_path)
    first, second, *_more = places(root)
    flip(root, first, 3)
    for at in range(20, 110):
        flip(root, second, at, 0xFF)
    hold(root, 1, 1)


@pytest.mark.parametrize(("name", "lost", "repairable"), [("d-magic", 0, 1), ("d-zeropage-first", 10, 0)])
def test_damaged_stores_of_rocketmq_are_called_the_same(name, lost, repairable, tmp_path):
    hold(golden.extract(name, tmp_path), lost, repairable)
