"""``seglog retention``: what would go and who needs it, deleting it, and bringing parked messages back."""

from __future__ import annotations

import json
import os

import pytest

from seglog.broker.broker import Broker
from seglog.broker.retention.retention_side_files import PARKED
from seglog.broker.settings.config import BrokerConfig
from seglog.clock import VirtualClock
from seglog.doctor.groups.receipts import RECEIPTS
from seglog.doctor.message.copy_names import RETRY_TOPIC
from seglog.errors import ConfigError, InvalidArgumentError, StoreLockedError
from seglog.storage.store import MessageStore
from tests.support.brokers import send
from tests.support.command_line import Seglog
from tests.support.material import golden
from tests.support.material.stores import QUEUE_FILE_BYTES, SEGMENT_BYTES, copy_store, read_all

LONG_AGO_MS = 1_600_000_000_000
COUNT = 30


@pytest.fixture
def store(tmp_path):
    """Thirty old messages, three in a file of the log; ``slow`` has 10 of them, ``quick`` all."""
    path = tmp_path / "store"
    with Broker.open(
        path,
        clock=VirtualClock(LONG_AGO_MS),
        config=BrokerConfig(),
        segment_size_bytes=SEGMENT_BYTES,
        queue_file_size_bytes=QUEUE_FILE_BYTES,
    ) as broker:
        for number in range(COUNT):
            send(broker, "T", b"%d:" % number + bytes(1000), properties=b"KEYS\x01k%d\x02" % number)
        for group, offset in (("slow", 10), ("quick", COUNT)):
            broker.groups.find(group)
            broker.offsets.commit(group, "T", 0, offset, "c")
    return path


def first_offset(path):
    with MessageStore.open(path, read_only=True) as store:
        return store.min_offset("T", 0)


def test_a_plan_names_the_groups_and_counts_of_what_would_go(seglog: Seglog, store):
    *files, whole = seglog("retention", "plan", store, "--policy", "allow", "--json").lines
    assert {file["kind"] for file in files} == {"retention-file"}
    assert all(file["goes"] for file in files)
    assert sum(file["messages"] for file in files) == whole["messages"]
    needed = [need for file in files for need in file["neededBy"]]
    assert {(need["group"], need["topic"], need["why"]) for need in needed} == {("slow", "T", "undelivered")}
    assert needed[0]["from"] == 10
    assert whole["needed"] == [{"why": "undelivered", "group": "slow", "messages": whole["messages"] - 10}]
    told = seglog("retention", "plan", store, "--policy", "allow").stdout
    assert "ARE LOST" in told
    assert "slow" in told


def test_by_default_a_file_that_somebody_needs_stays_with_all_behind_it(seglog: Seglog, store):
    whole = seglog("retention", "plan", store, "--json").lines[-1]
    assert (whole["held"], whole["messages"]) == (True, 9)
    assert whole["heldBehind"] > 0
    done = seglog("retention", "run", store, "--apply", "--json").lines[-1]
    assert done["files"] == 3
    assert first_offset(store) == 9
    again = seglog("retention", "run", store, "--apply")
    assert (again.exit_code, "0 files of the log deleted" in again.stdout) == (0, True)
    assert "one stays for those who need it" in again.stdout


def test_a_plan_changes_nothing_and_works_beside_a_broker(seglog: Seglog, store):
    before = {path: path.stat().st_mtime_ns for path in store.rglob("*") if path.is_file()}
    assert seglog("retention", "plan", store, "--policy", "allow").exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in store.rglob("*") if path.is_file()} == before
    with MessageStore.open(store):
        assert seglog("retention", "plan", store).exit_code == 0
        assert seglog("retention", "run", store, "--apply").exit_code == StoreLockedError.exit_code
    assert first_offset(store) == 0


def test_young_messages_stay(seglog: Seglog, store):
    whole = seglog("retention", "plan", store, "--older-than", "36500d", "--json").lines[-1]
    assert (whole["files"], whole["messages"]) == (0, 0)
    assert whole["young"] > 0
    assert "nothing is old enough" in seglog("retention", "plan", store, "--older-than", "36500d").stdout


def test_groups_can_be_ignored_by_name_or_because_nobody_uses_them(seglog: Seglog, store):
    for options in (["--ignore", "slow"], ["--idle", "30d"]):
        whole = seglog("retention", "plan", store, *options, "--json").lines[-1]
        assert (whole["held"], whole["needed"]) == (False, [])
        assert "slow" in whole["ignoredGroups"]
    done = seglog("retention", "run", store, "--ignore", "slow", "--apply", "--json").lines[-1]
    assert done["files"] > 8


def test_parked_messages_come_back_to_the_group_that_needed_them_once(seglog: Seglog, store):
    *_files, parked, done = seglog("retention", "run", store, "--policy", "park", "--apply", "--json").lines
    low = first_offset(store)
    assert done["parkedMessages"] == low - 10
    assert parked["kind"] == "parked-file"
    assert parked["file"].startswith(PARKED)
    *listed, _preview = seglog("retention", "unpark", store, "--json").lines
    assert sum(line["waiting"] for line in listed) == low - 10
    assert {line["group"] for line in listed} == {"slow"}
    assert "nothing was changed" in seglog("retention", "unpark", store).stdout

    receipts = seglog("retention", "unpark", store, "--apply", "--json").lines
    assert [(line["status"], line["queueOffset"]) for line in receipts] == [
        ("sent", number) for number in range(low - 10)
    ]
    with MessageStore.open(store, read_only=True) as opened:
        back = read_all(opened, "%RETRY%slow", 0)
    assert [message.body.split(b":")[0] for message in back] == [b"%d" % n for n in range(10, low)]
    assert {message.properties[RETRY_TOPIC] for message in back} == {"T"}
    assert [message.keys for message in back] == [[f"k{n}"] for n in range(10, low)]
    with Broker.open(store, clock=VirtualClock()) as broker:
        assert broker.topics.get("%RETRY%slow") is not None

    again = seglog("retention", "unpark", store, "--apply", "--json").lines
    assert {line["status"] for line in again} == {"was-sent"}
    assert "0 messages brought back" in seglog("retention", "unpark", store, "--apply").stdout
    with MessageStore.open(store, read_only=True) as opened:
        assert opened.max_offset("%RETRY%slow", 0) == low - 10


def test_only_what_a_group_needs_comes_back(seglog: Seglog, store):
    seglog("retention", "run", store, "--policy", "park", "--apply")
    assert seglog("retention", "unpark", store, "--group", "other", "--apply", "--json").lines == []
    assert "nothing is parked" in seglog("retention", "unpark", store, "--group", "other").stdout


def test_a_stopped_run_goes_on_without_sending_twice(seglog: Seglog, store, tmp_path):
    seglog("retention", "run", store, "--policy", "park", "--apply")
    untouched = copy_store(store, tmp_path / "untouched")
    count = len(seglog("retention", "unpark", store, "--apply", "--json").lines)
    receipts = store / RECEIPTS / "parked.jsonl"
    lines = receipts.read_text().splitlines()
    announced = [line for line in lines if "announced" in json.loads(line)]
    assert len(announced) == count
    # Killed when the messages were put, and half a receipt was written.
    receipts.write_text("".join(f"{line}\n" for line in announced) + lines[-1][:20])
    again = seglog("retention", "unpark", store, "--apply", "--json").lines
    assert [line["status"] for line in again] == ["found"] * count
    # Killed when they were announced, and none was put.
    (untouched / RECEIPTS).mkdir(parents=True)
    (untouched / RECEIPTS / "parked.jsonl").write_text("".join(f"{line}\n" for line in announced))
    after = seglog("retention", "unpark", untouched, "--apply", "--json").lines
    assert [line["status"] for line in after] == ["sent"] * count
    for path in (store, untouched):
        with MessageStore.open(path, read_only=True) as opened:
            assert opened.max_offset("%RETRY%slow", 0) == count


def test_dead_and_delayed_messages_come_back_where_they_belong(seglog: Seglog, tmp_path):
    path = tmp_path / "s"
    with MessageStore.open(
        path, clock=VirtualClock(LONG_AGO_MS), segment_size_bytes=SEGMENT_BYTES, queue_file_size_bytes=200
    ) as store:
        store.put("%DLQ%g", b"dead" + bytes(900), properties={RETRY_TOPIC: "T"})
        hidden = {"DELAY": "3", "REAL_TOPIC": "Later", "REAL_QID": "2"}
        store.put("SCHEDULE_TOPIC_XXXX", b"late" + bytes(900), queue_id=2, properties=hidden)
        store.put("RMQ_SYS_TRANS_HALF_TOPIC", b"half" + bytes(900))
        for _ in range(6):
            store.put("T", bytes(1000))
    held = seglog("retention", "plan", path, "--json").lines[-1]
    assert [(need["why"], need["messages"]) for need in held["needed"]] == [
        ("dead letters", 1),
        ("delayed", 1),
        ("half messages", 1),
    ]
    done = seglog("retention", "run", path, "--policy", "park", "--apply", "--json").lines[-1]
    assert done["parkedMessages"] == 3
    back = seglog("retention", "unpark", path, "--apply", "--json").lines
    assert [(line["topic"], line["queueId"]) for line in back] == [("%DLQ%g", 0), ("Later", 2)]
    with MessageStore.open(path, read_only=True) as store:
        (late,) = read_all(store, "Later", 2)
        assert late.body[:4] == b"late"
        assert "DELAY" not in late.properties
        (dead,) = read_all(store, "%DLQ%g", 0)
        assert dead.properties[RETRY_TOPIC] == "T"


def test_damaged_parked_files_are_named(seglog: Seglog, store):
    seglog("retention", "run", store, "--policy", "park", "--apply")
    (file, *_more) = sorted((store / PARKED).iterdir())
    file.write_text("{}\n")
    ran = seglog("retention", "unpark", store)
    assert ran.exit_code == InvalidArgumentError.exit_code
    assert f"{file.name} line 1 is damaged" in ran.stderr


def test_the_rules_of_rocketmqs_own_cleaning_are_shown_of_each_file(seglog: Seglog, tmp_path):
    root = golden.extract("roll", tmp_path)
    names = sorted(path.name for path in (root / "commitlog").iterdir())
    os.utime(root / "commitlog" / names[0], (0, 0))
    os.utime(root / "commitlog" / names[1])
    conf = tmp_path / "broker.conf"
    conf.write_text("fileReservedTime=48\ndeleteWhen=02\ndiskMaxUsedSpaceRatio=95\n")
    lines = seglog("retention", "broker", root, "--broker-conf", conf, "--json").lines
    assert [line["file"] for line in lines[:-1]] == names
    assert [line["rule"] for line in lines[1:-1]] == ["age", "behind", "behind", "newest"]
    assert (lines[-1]["kind"], lines[-1]["fileReservedTime"], lines[-1]["deleteWhen"]) == (
        "broker-retention",
        48,
        "02",
    )
    shown = seglog("retention", "broker", root).stdout
    assert "stays: the newest file is never deleted" in shown
    assert "stays: expired, but behind a file that stays" in shown
    conf.write_text("fileReservedTime=soon\n")
    refused = seglog("retention", "broker", root, "--broker-conf", conf)
    assert refused.exit_code == InvalidArgumentError.exit_code


@pytest.mark.parametrize("damage", ["gone", "empty"])
def test_without_the_table_of_offsets_nothing_is_deleted_until_the_history_gave_it_back(
    seglog: Seglog, store, damage
):
    planned = seglog("retention", "plan", store).stdout
    table = store / "config" / "consumerOffset.json"
    for path in (table, table.with_name(f"{table.name}.bak")):
        path.unlink(missing_ok=True)
        if damage == "empty":
            path.touch()
    for words in (("plan", store), ("run", store, "--apply"), ("run", store)):
        refused = seglog("retention", *words)
        assert refused.exit_code == ConfigError.exit_code
        assert f"seglog repair {store}" in refused.stderr
    assert first_offset(store) == 0
    seglog("repair", store, "--apply", "--yes")
    assert seglog("retention", "plan", store).stdout == planned
