"""Nothing that a store holds steers the terminal that it is shown on, by any command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from seglog.errors import Ending
from seglog.storage.store import MessageStore
from tests.support.command_line import Seglog
from tests.support.damage.broker_damage import small_store
from tests.support.hostile.commands import ALL, NOT_HERE, READING, Subject, command_paths, words_of
from tests.support.hostile.text import ACTS, HOSTILE
from tests.support.rows import every_row
from tests.support.scale import chance, is_gate

FORMS = ("text", "json")
BYTES = HOSTILE.encode() + b"\xff"
TOPIC, TEXT = "P" * len(BYTES), "Q" * len(BYTES)
NAME = BYTES.decode("utf-8", "surrogateescape")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A store in which everything that can have a name has one that acts upon terminals."""
    root = tmp_path_factory.mktemp("hostile") / "store"
    config = root / "config"
    config.mkdir(parents=True)
    last = ""
    with small_store(root, record_crc=False) as store:
        for number in range(6):
            last = store.put(
                TOPIC, TEXT.encode(), keys=TEXT, tags=TEXT, properties={TEXT: TEXT, "n": str(number)}
            ).message_id
            store.put("Topic0", b"plain", keys="k1", tags=TEXT)
        store.put(f"%DLQ%{TOPIC}", TEXT.encode(), keys=TEXT, properties={"RETRY_TOPIC": TEXT})
        store.put("RMQ_SYS_TRANS_HALF_TOPIC", b"half", properties={"REAL_TOPIC": TEXT, "PGROUP": TEXT})
    for path in (root / "commitlog").iterdir():
        data = path.read_bytes()
        path.write_bytes(data.replace(TOPIC.encode(), BYTES).replace(TEXT.encode(), BYTES))
    for path in list((root / "consumequeue").iterdir()):
        path.rename(path.with_name(path.name.replace(TOPIC, NAME)))
    shown = HOSTILE
    topics = {shown: {"topicName": shown, "readQueueNums": 1, "attributes": {shown: shown}}}
    tables: dict[str, dict[str, object]] = {
        "topics.json": {"topicConfigTable": topics},
        "consumerOffset.json": {"offsetTable": {f"{shown}@{shown}": {"0": 99}, "Topic0@g": {"0": 1}}},
        "subscriptionGroup.json": {"subscriptionGroupTable": {shown: {"groupName": shown}}},
        f"{NAME}.json": {shown: shown},
    }
    for name, table in tables.items():
        (config / name).write_text(json.dumps({**table, "dataVersion": {}}))
    for folder in (
        "commitlog",
        "consumequeue/Topic0/0",
        "index",
        "seglog/undo",
        "seglog/attic",
        "seglog/branches",
    ):
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / NAME).write_bytes(b"theirs")
    return root, last


def test_every_command_is_tried():
    named = {name.partition(" --")[0].removesuffix(" NAME") for name in ALL}
    assert named | NOT_HERE.keys() == set(command_paths())
    assert not named & NOT_HERE.keys()


@pytest.mark.parametrize("form", FORMS)
def test_no_command_lets_a_store_act_upon_the_terminal(form, hostile, seglog: Seglog, tmp_path, monkeypatch):
    source, message_id = hostile
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with every_row() as row:
        for name in ALL:
            if is_gate() and chance("hostile text", name).choice(FORMS) != form:
                continue
            with row(name), TemporaryDirectory(dir=tmp_path) as folder:
                # Reading commands leave the store as it is; tests of manners and hostile stores see to that.
                root = source if name in READING else shutil.copytree(source, Path(folder, "store"))
                for topic, group, key in ((HOSTILE, HOSTILE, HOSTILE), ("Topic0", "g", "k1")):
                    aside = Path(folder, "a" if key == "k1" else "b")
                    aside.mkdir()
                    (aside / "rows.jsonl").write_text(json.dumps({"topic": HOSTILE, "body": HOSTILE}) + "\n")
                    words = words_of(name, Subject(root, aside, topic, group, key, message_id))
                    check_harmless(seglog(*words, *(["--json"] if form == "json" else [])))
                    for page in aside.glob("*.html"):
                        assert not ACTS.search(page.read_text())


def check_harmless(ran):
    text = (ran.stdout_bytes + ran.stderr.encode("utf-8", "surrogateescape")).decode("utf-8", "replace")
    assert not ACTS.search(text), (ACTS.search(text), text[-2000:])
    assert not any(line.startswith("FORGED") for line in text.splitlines())
    assert ran.exit_code != 70, text[-2000:]


def test_what_would_act_is_shown_as_its_escape(hostile, seglog: Seglog, tmp_path, monkeypatch):
    root, message_id = hostile
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with every_row() as row:
        for name in ("dump", "dump --log", "inspect queues", "tail", "inspect config", "check", "get"):
            with row(name):
                ran = seglog(*words_of(name, Subject(root, tmp_path, "Topic0", "g", "k1", message_id)))
                assert "\\x1b]0;x\\x07\\x9b31m" in ran.stdout


def test_a_page_has_no_tag_from_a_store(seglog: Seglog, tmp_path):
    with MessageStore.open(tmp_path / "store", record_crc=False) as store:
        store.put("P" * 9, b"x", keys="<b>k</b>")
    for path in (tmp_path / "store/commitlog").iterdir():
        with path.open("r+b") as file:
            head = file.read(4096)
            file.seek(0)
            file.write(head.replace(b"P" * 9, b"<i>&'\"</i"))
    (tmp_path / "store/commitlog/<u>").touch()
    assert seglog("report", tmp_path / "store", "--html", tmp_path / "page.html").exit_code in (
        0,
        Ending.LOSS,
    )
    page = (tmp_path / "page.html").read_text()
    assert "<u>" not in page
    assert "<i>&" not in page
