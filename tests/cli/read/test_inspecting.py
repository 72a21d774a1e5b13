"""``index show``, ``checkpoint``, ``config show``, ``id decode``, ``du``; every command on every store."""

from __future__ import annotations

import shutil

import pytest

from seglog.clock import VirtualClock
from seglog.errors import ConfigError, InvalidArgumentError, NotAStoreError, NotFoundError
from seglog.remoting.unique_id import UniqueIds
from seglog.storage.format.index.index import INDEX_ENTRY, IndexGeometry, key_hash
from seglog.storage.store import MessageStore
from tests.doctor.check.test_misnamed import call
from tests.support.command_line import Seglog
from tests.support.material import golden
from tests.support.material.sealed import flip
from tests.support.material.stores import Lengths
from tests.support.rows import every_row
from tests.support.scale import chance, is_gate

SMALL: Lengths = {"segment_size_bytes": 1 << 16, "queue_file_size_bytes": 2000}
COMMANDS = (
    ["segments"],
    ["queues"],
    ["cq", "show", "TopicA", "0"],
    ["log", "show", "--at", "0", "--hex"],
    ["log", "show", "--at", "30000"],
    ["index", "show", "--verify", "--entries", "3", "--key", "TopicA#k1"],
    ["checkpoint"],
    ["config", "show"],
    ["config", "show", "topics"],
    ["config", "show", "position-checkpoint"],
    ["query", "TopicA", "k1"],
    ["query", "--id", "7F00000100002A9F0000000000000000"],
    ["du"],
)


def on(command, store):
    words = 2 if command[0] in ("cq", "log", "index", "config") else 1
    return [*command[:words], store, *command[words:]]


def test_every_store_is_shown_unchanged_with_a_documented_exit_code(seglog: Seglog):
    with every_row() as row:
        for name in golden.golden_names() + golden.config_names():
            path = golden.shared(name)
            before = golden.tree_digest(path)
            for command in COMMANDS:
                forms: list[list[str]] = [[], ["--json"]]
                if is_gate():
                    forms = [chance("inspecting", name, *command).choice(forms)]
                for form in forms:
                    with row(name, *command, *form):
                        ran = seglog(*on(command, path), *form)
                        assert ran.exit_code in (0, 1, 13, 15), ran.stderr
                        assert "Traceback" not in ran.stderr
                        if form:
                            assert all(isinstance(line, dict) for line in ran.lines)
            with row(name, "unchanged"):
                assert golden.tree_digest(path) == before


def test_what_is_no_store_is_refused(seglog: Seglog, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "holiday.jpg").touch()
    with every_row() as row:
        for command in COMMANDS:
            with row(*command):
                assert seglog(*on(command, tmp_path / "nothing")).exit_code == NotFoundError.exit_code
                assert seglog(*on(command, other)).exit_code == NotAStoreError.exit_code
                assert [item.name for item in tmp_path.iterdir()] == ["other"]
                assert [item.name for item in other.iterdir()] == ["holiday.jpg"]


@pytest.fixture
def indexed(tmp_path):
    """A store whose keys fall into two slots."""
    with MessageStore.open(tmp_path / "s", index_geometry=IndexGeometry(2, 8), **SMALL) as store:
        puts = [store.put("orders", b"x", keys=f"k{n}") for n in range(10)]
        store.query("orders", "k0")  # brings the index to the log's end
    return tmp_path / "s", puts


def test_the_index_shows_headers_entries_and_the_chain_of_a_key(seglog: Seglog, indexed):
    path, puts = indexed
    ran = seglog("index", "show", path, "--verify", "--json")
    assert ran.exit_code == 0
    assert [(line["maxHashSlotNum"], line["maxIndexNum"], line["full"]) for line in ran.lines] == [
        (2, 8, True),
        (2, 8, False),
    ]
    first = ran.lines[0]["file"].partition("/")[2]
    entries = seglog("index", "show", path, first, "--entries", 3, "--json").lines[1:]
    assert [(line["entry"], line["commitLogOffset"]) for line in entries] == [
        (number, puts[number - 1].phy_offset) for number in (5, 6, 7)
    ]
    chain = seglog("index", "show", path, first, "--key", "orders#k3", "--json").lines[1:]
    assert [line["commitLogOffset"] for line in chain if line["keyIs"] == "this key"] == [puts[3].phy_offset]
    assert all(line["slot"] == key_hash("orders#k3") % 2 for line in chain)
    assert "this key" in seglog("index", "show", path, "--key", "orders#k3").stdout


def test_a_damaged_index_ends_with_1(seglog: Seglog, indexed):
    path, _puts = indexed
    file = min((path / "index").iterdir())
    flip(file, file.stat().st_size - INDEX_ENTRY.size_bytes - 1)
    assert seglog("index", "show", path).exit_code == 0
    ran = seglog("index", "show", path, "--verify")
    assert ran.exit_code == 1
    assert "index-chain" in ran.stdout
    file.write_bytes(b"\xff" * 333)
    ran = seglog("index", "show", path, "--json")
    assert ran.exit_code == 1
    assert ran.lines[0]["damage"]
    assert seglog("index", "show", path, "nosuch").exit_code == NotFoundError.exit_code
    assert seglog("index", "show", path, "--key", "nohash").exit_code == InvalidArgumentError.exit_code
    assert seglog("index", "show", path, "--entries", "0").exit_code == InvalidArgumentError.exit_code


def test_the_checkpoint_says_whether_it_is_there_and_whole(seglog: Seglog, tmp_path):
    path = golden.extract("roll", tmp_path)
    (line,) = seglog("checkpoint", path, "--json").lines
    assert line["state"] == "whole"
    assert line["physic_timestamp_ms"] > 0
    assert "store time of the newest" in seglog("checkpoint", path).stdout
    (path / "checkpoint").write_bytes(b"\1" * 20)
    assert "cut short to 20 bytes" in seglog("checkpoint", path).stdout
    (path / "checkpoint").unlink()
    assert seglog("checkpoint", path, "--json").lines[0]["state"].startswith("missing")


def test_config_files_are_read_in_their_dialect(seglog: Seglog, tmp_path):
    path = golden.extract("real-conf", tmp_path)
    assert seglog("config", "show", path).exit_code == 0
    (line,) = seglog("config", "show", path, "topics", "--json").lines
    assert (line["from"], "TopicX" in line["value"]["topicConfigTable"]) == ("file", True)
    (path / "config" / "consumerOffset.json").write_text('{"offsetTable":{"t@g":{0:12,1:5}}}')
    (line,) = seglog("config", "show", path, "consumerOffset.json", "--json").lines
    assert line["value"]["offsetTable"] == {"t@g": {"0": 12, "1": 5}}
    (line,) = seglog("config", "show", path, "timercheck", "--json").lines
    assert line["value"]["last_queue_offset"] == 90
    assert "next slot to read" in seglog("config", "show", path, "timercheck").stdout
    assert "queueOffsetMap" in seglog("config", "show", path, "position-checkpoint").stdout


def test_a_damaged_config_file_is_read_from_its_backup_and_that_is_said(seglog: Seglog, tmp_path):
    path = golden.extract("real-conf", tmp_path)
    main = path / "config" / "topics.json"
    main.write_bytes(main.read_bytes()[:100])
    before = golden.tree_digest(path)
    ran = seglog("config", "show", path, "topics", "--json")
    assert (ran.exit_code, ran.lines[0]["from"], ran.lines[0]["file"]) == (
        1,
        "backup",
        "config/topics.json.bak",
    )
    assert ran.lines[0]["damage"]
    assert "read from the backup" in seglog("config", "show", path).stdout
    assert golden.tree_digest(path) == before
    main.unlink()
    assert seglog("config", "show", path, "topics").exit_code == 1
    shutil.copy(path / "checkpoint", path / "config" / "topics.json.bak")
    assert seglog("config", "show", path, "topics").exit_code == ConfigError.exit_code
    assert seglog("config", "show", path).exit_code == 1


@pytest.mark.parametrize("name", ["nosuch", "../checkpoint", "/etc/passwd", "..", ""])
def test_config_show_reads_nothing_but_config_files(seglog: Seglog, tmp_path, name):
    path = golden.extract("roll", tmp_path)
    assert seglog("config", "show", path, name).exit_code == NotFoundError.exit_code


def test_an_offset_id_and_a_unique_key_are_told_apart(seglog: Seglog, indexed):
    _path, puts = indexed
    (line,) = seglog("id", "decode", puts[7].message_id, "--json").lines
    assert line["likely"] == "offsetMsgId"
    assert line["offsetMsgId"] == {"storeHost": "127.0.0.1:10911", "commitLogOffset": puts[7].phy_offset}
    assert str(puts[7].phy_offset) in seglog("id", "decode", puts[7].message_id).stdout
    ids = UniqueIds(
        VirtualClock(start_ms=86_400_000 + 3_661_001), address=bytes(range(16)), process_id=70_000
    )
    ids.next()
    text = ids.next()
    (line,) = seglog("id", "decode", text, "--json").lines
    assert (line["likely"], line["offsetMsgId"]) == ("uniqKey", None)
    key = line["uniqKey"]
    assert (key["pid"], key["counter"], key["sinceMonthMs"]) == (70_000 & 0xFFFF, 1, 86_400_000 + 3_661_001)
    assert "day 2 of its month, 01:01:01.001" in seglog("id", "decode", text).stdout


@pytest.mark.parametrize("text", ["", "x", "7F", "7F00000100002A9F00000000000012", "Z" * 32, "é" * 32])
def test_what_is_no_id_is_refused(seglog: Seglog, text):
    assert seglog("id", "decode", text).exit_code == InvalidArgumentError.exit_code


def test_du_counts_every_file_once_and_names_the_largest_topic_first(seglog: Seglog, tmp_path):
    path = golden.extract("real-conf-5.4.0", tmp_path)
    (path / "seglog" / "attic").mkdir(parents=True)
    (path / "seglog" / "attic" / "1-x").write_bytes(b"x" * 99)
    lines = seglog("du", path, "--json").lines
    parts = {line["part"]: line for line in lines if line["kind"] == "part"}
    sizes = [item.stat().st_size for item in path.rglob("*") if item.is_file()]
    assert sum(part["fileBytes"] for part in parts.values()) == sum(sizes)
    assert sum(part["files"] for part in parts.values()) == len(sizes)
    assert parts["seglog/attic"]["fileBytes"] == 99
    topics = [line["logBytes"] for line in lines if line["kind"] == "topic-size"]
    assert topics == sorted(topics, reverse=True)
    assert "commitlog" in seglog("du", path).stdout


def test_du_estimates_the_log_of_each_topic_from_its_queues(seglog: Seglog, tmp_path):
    path = golden.extract("roll", tmp_path)
    records = [line for line in seglog("dump", path, "--log", "--json").lines if line.get("msgSize")]
    lines = [line for line in seglog("du", path, "--json").lines if line["kind"] == "topic-size"]
    assert sum(line["logBytes"] for line in lines) == sum(record["msgSize"] for record in records)


def test_du_sees_files_of_the_log_where_their_records_say(seglog: Seglog, tmp_path):
    path = golden.extract("roll", tmp_path)
    whole = seglog("du", path, "--json").lines
    call(path, (1, 2, 3, 4, 5))
    assert seglog("du", path, "--json").lines == whole
