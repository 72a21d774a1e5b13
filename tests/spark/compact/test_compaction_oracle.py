"""What is left of random stores is what a dict of keys says, and the store stays one that proves itself."""

from __future__ import annotations

import json

import pytest

from seglog.clock import VirtualClock
from seglog.doctor.check import check_store
from seglog.errors import SeglogError, StoreError
from seglog.spark.compact.compact import Compaction
from seglog.spark.compact.phases import LocalRunner
from seglog.spark.compact.policy import Policy, Verdict
from seglog.spark.compact.swap import old_store
from seglog.storage.files import RealFiles
from tests.support.compactions import STEP_MS, assert_survived, fill_random, survivors

POLICIES = [
    {"Prices": Policy(compact=True, delete_retention_ms=100 * STEP_MS)},
    {
        "Prices": Policy(compact=True, delete_retention_ms=0, min_compaction_lag_ms=150 * STEP_MS),
        "Events": Policy(retention_bytes=9_000),
    },
    {"Events": Policy(retention_ms=200 * STEP_MS), "Long" * 40: Policy(compact=True)},
    {"Prices": Policy(erased=frozenset({"k3", "a"})), "Events": Policy(retention_bytes=0)},
    {
        "Prices": Policy(compact=True, retention_ms=300 * STEP_MS, erased=frozenset({"a b"})),
        "Events": Policy(compact=True, retention_bytes=20_000),
        "Long" * 40: Policy(retention_ms=0),
    },
]


def compaction(filled, policies, **options):
    return Compaction(
        filled.root,
        policies,
        runner=LocalRunner(RealFiles()),
        split_bytes=6_000,
        clock=VirtualClock(filled.now_ms),
        draw=lambda bits: 0x1234567 % (1 << bits),
        **options,
    )


@pytest.mark.parametrize("allow_undelivered", [False, True], ids=["guarded", "undelivered allowed"])
@pytest.mark.parametrize(("seed", "policies"), list(enumerate(POLICIES)), ids=range(len(POLICIES)))
def test_what_stays_is_what_plain_python_says(tmp_path, seed, policies, allow_undelivered):
    filled = fill_random(tmp_path / "s", seed, record_crc=bool(seed % 2))
    kept = survivors(filled, policies, allow_undelivered=allow_undelivered)
    job = compaction(filled, policies, allow_undelivered=allow_undelivered)
    plan = job.plan()
    assert sum(topic.kept for topic in plan.topics) == len(kept)
    assert sum(sum(topic.records) for topic in plan.topics) == plan.audit.records
    held = sum(topic.records[Verdict.HELD] for topic in plan.topics)
    assert (
        held == 0
        if allow_undelivered
        else held == len(kept) - len(survivors(filled, policies, allow_undelivered=True))
    )
    assert not (tmp_path / "s.compact").exists()
    done = job.apply()
    assert done.plan.bytes_after == plan.bytes_after < plan.bytes_before
    assert_survived(filled.root, filled, kept)
    report = check_store(filled.root)
    assert {finding.code for finding in report.findings} <= allowed_findings(allow_undelivered)
    assert sum(queue.bytes for queue in report.queues) == plan.bytes_after
    assert report.min_phy_offset >= plan.audit.end_phy_offset


def allowed_findings(allow_undelivered):
    """A group that was left messages behind is told of that; nothing else is worth a word."""
    return {"offset-below-queue"} if allow_undelivered else set()


def test_groups_that_wait_for_what_would_go_are_named(tmp_path):
    filled = fill_random(tmp_path / "s", 7)
    policies = {"Prices": Policy(retention_ms=0)}
    plan = compaction(filled, policies, allow_undelivered=True).plan()
    waiting = {(one.group, one.topic, one.queue_id): one.messages for one in plan.undelivered}
    assert waiting == {
        at: len(filled.messages[at[1:]]) - offset for at, offset in filled.offsets.items() if at[0] == "slow"
    }


def test_second_compaction_goes_on_from_the_first(tmp_path):
    filled = fill_random(tmp_path / "s", 11)
    first = {"Prices": Policy(compact=True, min_compaction_lag_ms=300 * STEP_MS)}
    compaction(filled, first, allow_undelivered=True).apply()
    again = {"Prices": Policy(compact=True), "Events": Policy(retention_ms=50 * STEP_MS)}
    job = compaction(filled, again, allow_undelivered=True)
    old_store(filled.root).rename(tmp_path / "gone")
    done = job.apply()
    assert sum(topic.records[Verdict.PLACEHOLDER] for topic in done.plan.topics) > 0
    assert_survived(filled.root, filled, survivors(filled, again, allow_undelivered=True))
    assert {finding.code for finding in check_store(filled.root).findings} <= allowed_findings(True)


def test_topics_that_say_so_are_compacted_by_themselves(tmp_path):
    filled = fill_random(tmp_path / "s", 13, 100)
    table = {"Prices": {"topicName": "Prices", "attributes": {"cleanup.policy": "COMPACTION"}}}
    (filled.root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": table}))
    plan = compaction(filled, None, allow_undelivered=True).plan()
    assert [topic.topic for topic in plan.topics if topic.dropped] == ["Prices"]


@pytest.mark.parametrize(
    ("topic", "error"),
    [("SCHEDULE_TOPIC_XXXX", "the broker's own"), ("Nothing", "no topic Nothing")],
)
def test_nothing_can_be_asked_of_such_topics(tmp_path, topic, error):
    filled = fill_random(tmp_path / "s", 13, 20)
    with pytest.raises(SeglogError, match=error):
        compaction(filled, {topic: Policy(compact=True)}).plan()


def test_damaged_and_unclosed_stores_are_refused(tmp_path):
    filled = fill_random(tmp_path / "s", 13, 50)
    (filled.root / "abort").write_text("1")
    with pytest.raises(StoreError, match="was not closed"):
        compaction(filled, POLICIES[0]).apply()
    (filled.root / "abort").unlink()
    segment = next((filled.root / "commitlog").iterdir())
    data = bytearray(segment.read_bytes())
    data[600] ^= 1
    segment.write_bytes(data)
    with pytest.raises(StoreError, match="not in order"):
        compaction(filled, POLICIES[0]).apply()
    assert not (tmp_path / "s.compact").exists()
