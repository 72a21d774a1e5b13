"""What is left of random stores is what a dict of keys says, and the store stays one that proves itself."""

from __future__ import annotations

import json

import pytest

from seglog import MessageStore
from seglog.clock import VirtualClock
from seglog.doctor.check import check_store
from seglog.errors import SeglogError, StoreError
from seglog.spark.compact.compact import Compaction
from seglog.spark.compact.phases import LocalRunner
from seglog.spark.compact.policy import Policy, Verdict
from seglog.spark.compact.swap import old_store
from seglog.storage.files import RealFiles
from seglog.storage.format.compaction import compaction_sizes
from tests.support.compactions import SIZES, STEP_MS, assert_survived, fill_random, survivors

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


@pytest.mark.parametrize("lost_segments", [0, 2])
def test_compaction_log_keeps_what_the_commit_log_lost_to_retention(tmp_path, lost_segments):
    root = tmp_path / "s"
    (root / "config").mkdir(parents=True)
    table = {"Comp": {"topicName": "Comp", "attributes": {"cleanup.policy": "COMPACTION"}}}
    (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": table}))
    clock = VirtualClock(1_700_000_000_000)
    sizes = SIZES | {"compaction_sizes": compaction_sizes(10_000, 1_000)}
    last = {}
    with MessageStore.open(root, clock=clock, **sizes) as store:
        for number in range(400):
            # Some keys are only met in the segments that go, and one of them is deleted there.
            key = f"early{number % 5}" if number < 40 else f"k{number % 11}"
            body = b"" if number in (37, 399) else b"%d " % number * 30
            store.put("Comp", body, keys=key)
            last[key] = number, body
            clock.advance(1000)
    for segment in sorted((root / "commitlog").iterdir())[:lost_segments]:
        segment.unlink()
    job = Compaction(
        root,
        {"Comp": Policy(compact=True, delete_retention_ms=10_000)},
        split_bytes=6_000,
        runner=LocalRunner(RealFiles()),
        clock=clock,
    )
    assert job.apply().is_done
    with MessageStore.open(root, read_only=True) as store:
        at, found = -1, {}
        while len(result := store.get("Comp", 0, at)):
            found |= {message.queue_offset: message.body for message in result}
            at = result.next_offset
        assert store.max_offset("Comp", 0) == 400
    assert found == {number: body for number, body in last.values() if number != 37}
    assert check_store(root).is_clean
