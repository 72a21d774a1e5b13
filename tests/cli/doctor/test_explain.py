"""``seglog explain``: one message as one tree, on stores that RocketMQ wrote and on one made here."""

from __future__ import annotations

import shutil

import pytest

from seglog.broker.settings import BrokerConfig
from seglog.errors import InvalidArgumentError, NotFoundError
from seglog.storage.format.record.properties import encode_properties
from seglog.storage.store import MessageStore
from seglog.testing import VirtualBroker
from tests.support.command_line import Seglog
from tests.support.material import golden
from tests.support.material.lives import GROUP, TOPIC, UNIQUE, live
from tests.support.material.stores import SMALL_INDEX


@pytest.fixture
def life(tmp_path):
    return live(tmp_path / "s")


@pytest.fixture(scope="module")
def broker_store(tmp_path_factory):
    return golden.extract("broker-store", tmp_path_factory.mktemp("golden"))


def stages(ran):
    assert ran.exit_code == 0, ran.stderr
    return [line for line in ran.lines if line["kind"] == "stage"]


def places(found):
    return [(stage["role"], stage["commitLogOffset"], stage["parent"]) for stage in found]


def as_tree(life):
    (one, two), (first, second) = life.delays, life.retries
    return [
        ("message", life.born.phy_offset, None),
        ("delayed", one.phy_offset, life.born.phy_offset),
        ("retry", first.phy_offset, one.phy_offset),
        ("delayed", two.phy_offset, first.phy_offset),
        ("retry", second.phy_offset, two.phy_offset),
        ("dead", life.dead.phy_offset, second.phy_offset),
    ]


@pytest.mark.parametrize("name", ["unique", "key", "born", "dead"])
@pytest.mark.parametrize("scan", [[], ["--scan"], ["--no-scan"]])
def test_two_retries_and_a_dead_letter_are_one_tree(seglog: Seglog, life, name, scan):
    wanted = {
        "unique": UNIQUE,
        "key": "order-1",
        "born": life.born.message_id,
        "dead": life.dead.message_id,
    }[name]
    before = golden.tree_digest(life.path)
    found = stages(seglog("explain", life.path, wanted, *scan, "--json"))
    assert places(found) == as_tree(life)
    assert golden.tree_digest(life.path) == before


def test_text_names_every_record_and_what_groups_have_passed(seglog: Seglog, life):
    shown = seglog("explain", life.path, "order-1").stdout
    for put in life.all:
        assert put.message_id in shown
    assert f"retry of {GROUP}, after 2 failures" in shown
    assert f"dead letter of {GROUP}, after 3 failures" in shown
    assert f"{GROUP} passed (next {life.born.queue_offset + 1})" in shown
    assert f"audit not yet (next {life.born.queue_offset})" in shown
    assert "in the index by the unique key, order-1" in shown
    assert "looked for by the index" in shown


def test_without_index_one_scan_finds_everything_and_says_so(seglog: Seglog, life):
    shutil.rmtree(life.path / "index")
    ran = seglog("explain", life.path, UNIQUE, "--json")
    assert places(stages(ran)) == as_tree(life)
    search = ran.lines[-1]
    assert not search["byIndex"]
    assert {scan["from"] for scan in search["scanned"]} == {0}
    refused = seglog("explain", life.path, UNIQUE, "--no-scan")
    assert refused.exit_code == NotFoundError.exit_code
    assert "not looked at: the log itself" in refused.stderr


def test_a_copy_that_shares_only_the_origin_id_is_found_by_a_scan(seglog: Seglog, life):
    properties = {"ORIGIN_MESSAGE_ID": life.born.message_id, "UNIQ_KEY": "ANOTHER", "RETRY_TOPIC": TOPIC}
    with MessageStore.open(life.path) as store:
        put = store.put(f"%RETRY%{GROUP}2", b"x", properties=properties)
        for number in range(3):
            store.put(TOPIC, b"later", keys=f"later-{number}")
    assert put.phy_offset not in {
        at for _role, at, _parent in places(stages(seglog("explain", life.path, UNIQUE, "--json")))
    }
    found = stages(seglog("explain", life.path, UNIQUE, "--scan", "--json"))
    assert ("retry", put.phy_offset, life.born.phy_offset) in places(found)
    assert len(found) == 7


def test_other_records_that_hold_the_key_are_told_but_are_no_copies(seglog: Seglog, life):
    with MessageStore.open(life.path) as store:
        put = store.put("traces", b"saw " + UNIQUE.encode())
    ran = seglog("explain", life.path, UNIQUE, "--scan", "--json")
    assert len(stages(ran)) == 6
    assert ran.lines[-1]["mentions"] == [put.phy_offset]


def test_a_key_of_several_messages_shows_the_newest(seglog: Seglog, life):
    with MessageStore.open(life.path) as store:
        store.put(TOPIC, b"again", keys="order-1", properties={"UNIQ_KEY": "SECOND"})
    shown = seglog("explain", life.path, "order-1", "--count", "1").stdout
    assert "SECOND" in shown
    assert UNIQUE not in shown
    assert "several messages have this key" in shown
    assert {stage["message"] for stage in stages(seglog("explain", life.path, "order-1", "--json"))} == {0, 1}


def test_queue_units_are_held_against_the_record(seglog: Seglog, life):
    directory = life.path / "consumequeue" / f"%DLQ%{GROUP}"
    shutil.rmtree(directory)
    *_others, dead = stages(seglog("explain", life.path, UNIQUE, "--json"))
    assert dead["unit"] is None
    assert "no queue unit" in seglog("explain", life.path, UNIQUE).stdout
    assert [stage["unit"]["state"] for stage in _others] == ["right"] * 5


def test_what_is_not_there_or_makes_no_sense_is_refused(seglog: Seglog, life, tmp_path):
    assert seglog("explain", life.path, "nosuch").exit_code == NotFoundError.exit_code
    assert seglog("explain", tmp_path / "nosuch", "x").exit_code == NotFoundError.exit_code
    assert seglog("explain", life.path, "").exit_code == InvalidArgumentError.exit_code
    assert seglog("explain", life.path, "order-1", "--topic", "others").exit_code == NotFoundError.exit_code
    assert seglog("explain", life.path, "order-1", "--count", "0").exit_code == InvalidArgumentError.exit_code


@pytest.mark.parametrize(
    ("wanted", "tree"),
    [
        (
            "FD00000000000000000000000000000273A830946E0968AD94060000",
            "message delayed retry delayed retry dead",
        ),
        ("tx2", "half half committed"),
        ("tx1", "half"),
        ("rc", "timer message"),
        ("dl", "delayed message"),
        ("dt", "timer message retry"),
    ],
)
def test_lives_that_a_real_broker_wrote(seglog: Seglog, broker_store, wanted, tree):
    found = stages(seglog("explain", broker_store, wanted, "--json"))
    assert " ".join(stage["role"] for stage in found) == tree
    for before, stage in zip([None, *found], found, strict=False):
        assert stage["parent"] == (before and before["commitLogOffset"])
        assert stage["unit"]["state"] == "right"
        assert stage["index"]


def test_ends_of_real_transactions_and_delays(seglog: Seglog, broker_store):
    checked, committed, _message = stages(seglog("explain", broker_store, "tx2", "--json"))
    assert (checked["wait"]["state"], committed["wait"]["state"]) == ("checked", "committed")
    (rolled_back,) = stages(seglog("explain", broker_store, "tx1", "--json"))
    assert rolled_back["wait"]["state"] == "rolled-back"
    assert rolled_back["wait"]["opCommitLogOffset"] == 13127
    delayed, delivered = stages(seglog("explain", broker_store, "dl", "--json"))
    assert delayed["wait"] == {
        "state": "delivered",
        "due": delayed["storeTimestamp"] + 1000,
        "opCommitLogOffset": None,
    }
    assert {group["group"]: group["passed"] for group in delivered["groups"]}["cgsql"] is False


def test_a_delayed_message_is_due_by_the_levels_of_its_own_broker(seglog: Seglog, tmp_path):
    config = BrokerConfig(delay_levels="7s 2h")
    with VirtualBroker.at(tmp_path / "s", config=config) as broker:
        for level in (1, 2):
            broker.producer().send("T", b"x", keys=f"k{level}", delay_level=level)
    for level, delay_ms in ((1, 7_000), (2, 7_200_000)):
        (stage,) = stages(seglog("explain", tmp_path / "s", f"k{level}", "--json"))
        assert stage["wait"]["due"] - stage["storeTimestamp"] == delay_ms
        assert stage["wait"]["state"] == "waiting"


def test_messages_that_wait_on_stores_without_a_broker(seglog: Seglog, tmp_path):
    delay = golden.extract("delay", tmp_path)
    (stage,) = stages(seglog("explain", delay, "dk0", "--json"))
    assert (stage["role"], stage["wait"]["state"]) == ("delayed", "waiting")
    tx = golden.extract("tx", tmp_path)
    pending, rolled_back = (stages(seglog("explain", tx, key, "--json"))[-1] for key in ("txk0", "txk3"))
    assert pending["wait"]["state"] == "pending"
    assert rolled_back["wait"]["state"] == "rolled-back"


PREPARED, COMMIT, ROLLBACK = 4, 8, 12


def old_transaction(path, *ends):
    """A transaction as 3.x and 4.x wrote it: PREPARED in its own topic, and its end behind it."""
    properties = encode_properties({"UNIQ_KEY": "TX9", "KEYS": "k9"})
    with MessageStore.open(path, **SMALL_INDEX) as store:
        half = store.append("T", 0, b"half", properties, 0, sys_flag=PREPARED)
        for end in ends:
            body = b"half" if end == COMMIT else b""
            place = half.phy_offset
            store.append("T", 0, body, properties, 0, sys_flag=end, prepared_transaction_offset=place)
        for number in range(30):
            store.put("T", b"x", keys=f"other{number}")
    return path


@pytest.mark.parametrize(
    ("ends", "roles", "is_scanned"),
    [
        ((), ["prepared"], True),
        ((COMMIT,), ["prepared", "committed"], False),
        ((ROLLBACK,), ["prepared", "rolled-back"], True),
    ],
)
def test_the_end_of_an_old_transaction_is_found_though_no_index_has_it(
    seglog: Seglog, tmp_path, ends, roles, is_scanned
):
    path = old_transaction(tmp_path / "old", *ends)
    ran = seglog("explain", path, "k9", "--json")
    assert [stage["role"] for stage in stages(ran)] == roles
    assert (sum(one["records"] for one in ran.lines[-1]["scanned"]) > 30) == is_scanned
    told = seglog("explain", path, "k9", "--no-scan")
    assert ("not looked at: ROLLBACK records" in told.stdout) == is_scanned


def test_index_entries_of_tags_are_shown_where_there_are_any(seglog: Seglog, broker_store, life):
    (stage,) = stages(seglog("explain", broker_store, "0102FC00000001070A0B12EAA80000000C", "--json"))
    assert [(entry["key"], entry["isTag"]) for entry in stage["index"]] == [
        ("0102FC00000001070A0B12EAA80000000C", False),
        ("gk", False),
        ("TagA", True),
    ]
    assert "in the index by the unique key, gk, tag TagA" in seglog("explain", broker_store, "gk").stdout
    for stage in stages(seglog("explain", life.path, UNIQUE, "--json")):
        assert ("fruit" in {entry["key"] for entry in stage["index"] if entry["isTag"]}) == (
            stage["tags"] == "fruit"
        )
    (path,) = (life.path / "index").iterdir()
    path.write_bytes(bytes(path.stat().st_size))
    assert not any(stage["index"] for stage in stages(seglog("explain", life.path, UNIQUE, "--json")))
