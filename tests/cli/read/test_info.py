"""What a store holds, what state it is in, and what opening it would do."""

from __future__ import annotations

import os

from seglog.errors import Ending
from seglog.storage.store import MessageStore
from tests.support.command_line import Seglog
from tests.support.material import golden
from tests.support.rows import every_row


def info(seglog, path, *options):
    (facts,) = seglog("info", path, "--json", *options).lines
    return facts


def test_info_states_sizes_ranges_and_queues_of_a_real_store(seglog: Seglog, tmp_path):
    store = golden.extract("roll", tmp_path)
    facts = info(seglog, store)
    assert facts["state"] == "clean"
    assert facts["holder"] is None
    assert (facts["minPhyOffset"], facts["maxPhyOffset"], facts["records"]) == (0, 320471, 400)
    assert (facts["mappedFileSizeCommitLog"], facts["mappedFileSizeConsumeQueue"]) == (65536, 2000)
    assert facts["findings"] == []
    queues = {(queue["topic"], queue["queueId"]): queue for queue in facts["queues"]}
    for line in golden.expected("roll"):
        if line["kind"] == "queue":
            queue = queues.pop((line["topic"], line["queueId"]))
            assert (queue["minOffset"], queue["maxOffset"]) == (line["minOffset"], line["maxOffset"])
            assert queue["lastStoreTimestamp"] > 1_700_000_000_000
    assert not queues


def test_info_gives_the_lines_of_broker_conf_that_match(seglog: Seglog, tmp_path):
    lines = info(seglog, golden.extract("propcrc", tmp_path))["brokerConf"]
    assert lines == [
        f"storePathRootDir={tmp_path / 'propcrc'}",
        "mappedFileSizeCommitLog=65536",
        "mappedFileSizeConsumeQueue=2000",
        "maxHashSlotNum=500",
        "maxIndexNum=2000",
        "enabledAppendPropCRC=true",
    ]
    roll = golden.extract("roll", tmp_path)
    assert "enabledAppendPropCRC=true" not in info(seglog, roll)["brokerConf"]
    assert "mappedFileSizeCommitLog=65536" in seglog("info", roll).stdout


def test_info_tells_crashed_from_open_from_clean(seglog: Seglog, tmp_path):
    crashed = golden.extract("roll-halt", tmp_path)
    assert info(seglog, crashed)["state"] == "crashed"
    assert "crashed or was killed" in seglog("info", crashed).stdout
    with MessageStore.open(tmp_path / "live") as store:
        store.put("t", b"x")
        facts = info(seglog, tmp_path / "live")
        assert facts["state"] == "open"
        assert facts["holder"] in (-1, os.getpid())
        assert "open for writing by " in seglog("info", tmp_path / "live").stdout
    assert info(seglog, tmp_path / "live")["state"] == "clean"


def test_info_says_what_recovery_would_do_and_does_it_not(seglog: Seglog, tmp_path):
    store = golden.extract("d-trunclast", tmp_path)
    before = golden.tree_digest(store)
    facts = info(seglog, store)
    assert facts["recovery"]["cutBytes"] == 30000 - 28445
    assert facts["recovery"]["tombstones"] == 32
    assert "puts tombstones in the place of 32 records" in seglog("info", store).stdout
    lost = [finding for finding in facts["findings"] if finding["code"] == "messages-lost"]
    assert sum(finding["messages"] for finding in lost) == 32
    assert all(finding["file"] == "commitlog/00000000000000262144" for finding in lost)
    assert golden.tree_digest(store) == before


def test_verify_ends_with_1_where_a_repair_saves_what_cannot_be_read(seglog: Seglog, tmp_path):
    store = golden.extract("d-bodyflip-last", tmp_path)
    assert seglog("info", store).exit_code == 0
    assert "loss" not in seglog("info", store).stdout
    checked = seglog("info", store, "--verify")
    assert checked.exit_code == Ending.FINDINGS
    assert "record-repairable commitlog/00000000000000262144 +" in checked.stdout
    assert "loss" not in checked.stdout, "one flipped bit is flipped back"


def test_info_of_an_empty_store_has_no_queues(seglog: Seglog, tmp_path):
    facts = info(seglog, golden.extract("empty", tmp_path))
    assert (facts["minPhyOffset"], facts["maxPhyOffset"], facts["queues"]) == (-1, 0, [])


def test_info_of_every_golden_store_changes_nothing(seglog: Seglog):
    with every_row() as row:
        for name in golden.golden_names():
            with row(name):
                store = golden.shared(name)
                before = golden.tree_digest(store)
                assert seglog("info", store, "--verify").exit_code in (0, 1, Ending.LOSS)
                assert golden.tree_digest(store) == before


def test_disk_use_counts_holes_as_nothing(seglog: Seglog, tmp_path):
    with MessageStore.open(tmp_path / "s") as store:
        store.put("t", b"x")
    facts = info(seglog, tmp_path / "s")
    assert facts["fileBytes"] > 1 << 30
    assert facts["diskBytes"] < 64 << 20
