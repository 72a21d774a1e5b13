"""Directories that the real RocketMQ wrote are surveyed, read and taken over as RocketMQ served them."""

from __future__ import annotations

from hashlib import sha256

import pytest

from seglog.storage.files.files import RealFiles
from seglog.storage.findings.code import Severity
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from tests.support.material import golden
from tests.support.material.stores import read_all, served

INTACT = sorted(golden.golden_names(damaged=False))
CLEAN = [name for name in INTACT if not name.endswith("-halt")]
LOG_AND_QUEUES = ("commitlog/", "consumequeue/", "batchconsumequeue/")


@pytest.fixture(scope="module", params=INTACT)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def shared(name):
    """The store, for reading only."""
    return golden.shared(name)


@pytest.fixture
def root(name, tmp_path):
    return golden.extract(name, tmp_path)


def lines(name, kind):
    return [line for line in golden.expected(name) if line["kind"] == kind]


def expected_queues(name):
    return {
        (line["topic"], line["queueId"]): (line["minOffset"], line["maxOffset"], line["cqMaxPhysicOffset"])
        for line in lines(name, "queue")
    }


def expected_units(name):
    """Returns place, size and tags code of every unit that RocketMQ served."""
    return {
        (line["cqTopic"], line["cqQueueId"], line["cqOffset"]): (
            line["cqPos"],
            line["cqSize"],
            line["tagsCode"],
        )
        for line in lines(name, "msg")
    }


def surveyed_units(found):
    batches = {
        (state.topic, state.queue_id, base): (phy_offset, size, tags_code)
        for state in found.batch_queues.values()
        for phy_offset, size, tags_code, _time, base, *_ in state.units.tolist()
    }
    return batches | {
        (state.topic, state.queue_id, state.first_slot + slot): unit
        for state in found.queues.values()
        for slot, unit in enumerate(state.units.tolist())
        if state.first_slot + slot >= state.min_offset
    }


def expected_messages(name):
    """Returns what RocketMQ decoded, by queue and offset; messages without properties stop its dump."""
    return {
        (line["cqTopic"], line["cqQueueId"], line["cqOffset"]): (
            line["topic"], line["commitLogOffset"], line["storeTimestamp"], line["sysFlag"], line["flag"],
            line["bornTimestamp"], line["bornHost"], line["storeHost"], line["bodyCRC"],
            line["bodySha256"], line["properties"], line["preparedTransactionOffset"], line["reconsumeTimes"],
        )
        for line in lines(name, "msg") if "dumpError" not in line
    }  # fmt: skip


def as_expected(messages):
    return {
        (topic, queue_id, message.queue_offset): (
            message.topic, message.phy_offset, message.store_timestamp_ms, message.sys_flag, message.flag,
            message.born_timestamp_ms, message.born_host.java_text(), message.store_host.java_text(),
            message.body_crc, sha256(message.body).hexdigest(), message.properties,
            message.prepared_transaction_offset, message.reconsume_times,
        )
        for (topic, queue_id), queue in messages.items() for message in queue
    }  # fmt: skip


def test_survey_says_what_rocketmq_served_and_walks_its_records_and_changes_nothing(name, shared):
    before = golden.tree_digest(shared)
    found = survey(shared, RealFiles())
    (store,) = lines(name, "store")
    assert (found.min_phy_offset, found.max_phy_offset) == (store["minPhyOffset"], store["maxPhyOffset"])
    assert found.mode == ("abnormal" if store["abortBefore"] else "normal")
    states = found.queues | found.batch_queues
    assert {
        key: (state.min_offset, state.max_offset, state.max_phy_offset) for key, state in states.items()
    } == expected_queues(name)
    assert surveyed_units(found) == expected_units(name)
    assert {finding.code for finding in found.findings} <= {"log-spare"}
    assert golden.tree_digest(shared) == before

    walked = [line for line in lines(name, "log") if "ok" in line]
    assert all(line["ok"] for line in walked)
    assert found.rows["phy_offset"].tolist() == [line["pos"] for line in walked]
    assert found.rows["size_bytes"].tolist() == [line["size"] for line in walked]
    assert found.rows["queue_offset"].tolist() == [line["cqOffset"] for line in walked]
    assert found.rows["sys_flag"].tolist() == [line["sysFlag"] for line in walked]
    names = [found.scan.queues.names[number] for number in found.rows["queue"].tolist()]
    assert names == [(line["topic"], line["queueId"]) for line in walked]


def test_survey_without_checksums_comes_to_the_same(name, shared):
    assert surveyed_units(survey(shared, RealFiles(), verify=False)) == expected_units(name)


def test_reader_serves_every_message_and_changes_nothing(name, shared):
    before = golden.tree_digest(shared)
    with MessageStore.open(shared, read_only=True) as store:
        found = as_expected(served(store))
    expected = expected_messages(name)
    assert found.keys() >= expected.keys()
    assert {key: found[key] for key in expected} == expected
    assert golden.tree_digest(shared) == before


def log_and_queues(root):
    return {
        file: digest for file, digest in golden.tree_digest(root).items() if file.startswith(LOG_AND_QUEUES)
    }


def test_writer_keeps_every_message_leaves_a_clean_store_and_a_clean_one_as_it_was(name, root):
    before = log_and_queues(root) if name in CLEAN else {}
    with MessageStore.open(root, create=False) as store:
        assert {f.severity for f in store.recovery.findings} <= {Severity.NOTE}
        assert store.recovery.cut_bytes == 0
        found = as_expected(served(store))
    expected = expected_messages(name)
    assert {key: found[key] for key in expected} == expected
    after = survey(root, RealFiles())
    assert (after.mode, after.findings) == ("normal", [])
    assert surveyed_units(after) == expected_units(name)
    if name in CLEAN:
        assert log_and_queues(root) == before  # no byte of it


def test_writer_goes_on_where_rocketmq_stopped(name, root):
    with MessageStore.open(root, create=False) as store:
        before = {(q.topic, q.queue_id): q.max_offset for q in store.queues()}
        end = store.max_phy_offset
        for topic, queue_id in [*before, ("BrandNew", 0)]:
            if topic == "SCHEDULE_TOPIC_XXXX":
                continue
            put = store.put(topic, b"one more", queue_id=queue_id, tags="t")
            assert put.queue_offset == before.get((topic, queue_id), 0)
            assert put.phy_offset >= end
    after = survey(root, RealFiles())
    assert (after.mode, after.findings) == ("normal", [])
    with MessageStore.open(root, read_only=True) as store:
        assert read_all(store, "BrandNew", 0)[0].body == b"one more"
        assert expected_messages(name).items() <= as_expected(served(store)).items()


# name of the damaged copy: which messages of the intact store cannot be read any more
LOST = {
    "d-bodyflip-first": 1, "d-bodyflip-first-halt": 1, "d-bodyflip-last": 1, "d-magic": 1,
    "d-zeropage-first": 10, "d-zeropage-last": 11, "d-zeropage-last-halt": 11, "d-zerotail": 3,
    "d-zerotail-halt": 3, "d-trunclast": 32, "d-trimfront": 168, "d-trimfront-halt": 168,
    "d-propcrc-propflip": 1,
}  # fmt: skip


MENDED = {"d-bodyflip-first", "d-bodyflip-first-halt", "d-bodyflip-last", "d-magic", "d-propcrc-propflip"}
"""Of these opening to write loses none: a checksum proves what the record was."""


@pytest.mark.parametrize("name", golden.golden_names(damaged=True))
@pytest.mark.parametrize("read_only", [True, False], ids=["read", "write"])
def test_damage_costs_the_damaged_messages_and_no_other(name, read_only, tmp_path):
    root = golden.shared(name) if read_only else golden.extract(name, tmp_path)
    whole = "propcrc" if "propcrc" in name else "roll-halt" if name.endswith("-halt") else "roll"
    intact = expected_messages(whole)
    # Where no queue file is left, nothing but its broker knows how long they were.
    length = 2000 if name.startswith("d-nocq") and not read_only else None
    with MessageStore.open(root, read_only=read_only, create=False, queue_file_size_bytes=length) as store:
        found = as_expected(served(store))
    if name == "d-propflip":  # nothing but the record CRC, which this store has not, could tell
        assert found.keys() == intact.keys()
        return
    assert found.items() <= intact.items()
    is_mended = name in MENDED and not read_only
    assert len(intact) - len(found) == (0 if is_mended else LOST.get(name, 0))
    if not read_only:
        again = survey(root, RealFiles())
        assert {f.code for f in again.findings} <= {"log-hole", "tombstones"}
