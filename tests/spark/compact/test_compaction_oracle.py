"""What is left of random stores is what a dict of keys says, and the store stays one that proves itself."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from seglog import Broker, MessageStore
from seglog.clock import VirtualClock
from seglog.doctor.check.check import check_store
from seglog.doctor.copies.branch import create_branch
from seglog.errors import FileKindError, SeglogError, StoreError, UnsupportedStoreError
from seglog.spark.compact.compact import Compaction
from seglog.spark.compact.policy import DAY_MS, Policy, Verdict
from seglog.spark.compact.swap import old_store
from seglog.storage.files.files import RealFiles
from seglog.storage.files.store_root import StoreRoot
from seglog.storage.format.queue.compaction import compaction_sizes
from seglog.storage.format.record.properties import encode_properties
from seglog.storage.format.record.record import HEAD_V4
from tests.support.local_runner import LocalRunner
from tests.support.material.compactions import SIZES, STEP_MS, Filled, assert_survived, fill_random, survivors
from tests.support.material.records import Record
from tests.support.material.stores import served

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


def test_bodies_that_look_like_records_at_their_own_place_are_only_bodies(tmp_path):
    clock = VirtualClock(1_700_000_000_000)
    root = tmp_path / "s"
    with MessageStore.open(root, clock=clock, record_crc=False, **SIZES) as store:
        for number in range(40):
            at = store.put("T", b"small", keys=f"k{number % 3}")
            body_at = at.phy_offset + at.size_bytes + HEAD_V4.size_bytes
            fakes = [Record(topic=b"T", phy_offset=body_at + 300 * i, body=bytes(150)) for i in range(8)]
            store.put("T", b"".join(fake.pack().ljust(300, b"x") for fake in fakes), keys=f"k{number % 3}")
            clock.advance(1000)
        messages = served(store)
    filled = Filled(root, messages, clock.now_ms())
    policies = {"T": Policy(compact=True)}
    done = compaction(filled, policies).apply()
    assert done.plan.dropped == 77
    assert_survived(root, filled, survivors(filled, policies))


def test_messages_without_key_stay_and_supersede_none(tmp_path):
    root, clock = tmp_path / "s", VirtualClock(1_700_000_000_000)
    sent = [("a", b"1"), (None, b"2"), ("  ", b"3"), (None, b""), ("a", b"4"), ("a b", b"5"), ("b", b"6")]
    with MessageStore.open(root, clock=clock, **SIZES) as store:
        for keys, body in sent:
            given = {} if keys is None else {"KEYS": keys}
            store.append("T", 0, body, encode_properties(given), 0)
            clock.advance(1000)
    filled = Filled(root, {}, clock.now_ms() + 10 * DAY_MS)
    assert compaction(filled, {"T": Policy(compact=True)}).apply().plan.dropped == 1
    with MessageStore.open(root, read_only=True) as store:
        left = {message.body for message in store.get("T", 0, store.min_offset("T", 0))}
    assert left == {body for _keys, body in sent} - {b"1"}


def test_store_of_which_parts_lie_elsewhere_is_refused(tmp_path):
    filled = fill_random(tmp_path / "s", 13, 50)
    (filled.root / "index").rename(tmp_path / "elsewhere")
    (filled.root / "index").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileKindError, match="index is a link"):
        compaction(filled, POLICIES[0]).apply()


def test_store_with_branches_is_refused(tmp_path):
    filled = fill_random(tmp_path / "s", 13, 50)
    create_branch(StoreRoot(filled.root), filled.root, "test", VirtualClock(filled.now_ms))
    with pytest.raises(UnsupportedStoreError, match="has branches"):
        compaction(filled, POLICIES[0]).apply()


def test_timer_messages_keep_a_store_where_it_is(tmp_path):
    filled = fill_random(tmp_path / "s", 13, 50)
    with MessageStore.open(filled.root) as store:
        store.put("rmq_sys_wheel_timer", b"later")
    with pytest.raises(UnsupportedStoreError, match="timer messages"):
        compaction(filled, POLICIES[0]).plan()


def test_name_that_leads_to_a_store_goes_on_leading_to_it(tmp_path):
    filled = fill_random(tmp_path / "s", 13, 50)
    (tmp_path / "name").symlink_to("s")
    linked = replace(filled, root=tmp_path / "name")
    assert compaction(linked, POLICIES[3], allow_undelivered=True).apply().is_done
    assert (tmp_path / "name").is_symlink()
    kept = survivors(filled, POLICIES[3], allow_undelivered=True)
    assert_survived(tmp_path / "name", filled, kept)


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


def test_what_a_group_has_to_read_in_a_queue_where_it_has_no_offset_yet_is_held(tmp_path):
    root, clock = tmp_path / "s", VirtualClock()
    with Broker.open(root, clock=clock) as broker:
        for number in range(60):
            broker.store.put("orders", b"%d" % number, queue_id=number % 3, keys="k")
        for queue_id in range(3):
            broker.offsets.commit("billing", "orders", queue_id, 20)
        broker.offsets.commit("other", "orders", 0, 5)
    job = Compaction(root, {"orders": Policy(compact=True)}, runner=LocalRunner(RealFiles()), clock=clock)
    plan = job.plan()
    assert {(one.group, one.queue_id, one.offset) for one in plan.undelivered} == {
        ("other", 0, 5),
        ("other", 1, 0),
        ("other", 2, 0),
    }
    assert [topic.kept for topic in plan.topics] == [55]
