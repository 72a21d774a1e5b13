"""What commands say about known stores, whole: each dialogue is a file beside this one, to be read.

``pytest tests/dialogues --rewrite-dialogues`` writes them anew; what changed is then reviewed as a diff.
"""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from seglog.cli.main import commands
from tests.support.material import golden

FOLDER = Path(__file__).parent
DIALOGUES = {
    "check-intact": ("roll", ["check", "roll"]),
    "check-transactions": ("tx", ["check", "tx"]),
    "check-broker": ("real-conf", ["check", "real-conf"]),
    "check-hole": ("d-zeropage-first", ["check", "d-zeropage-first"]),
    "check-lost-end": ("d-trunclast", ["check", "d-trunclast"]),
    "check-garbage-units": ("d-cqgarbage", ["check", "d-cqgarbage"]),
    "check-missing-queue": ("d-cqqueue-missing-halt", ["check", "d-cqqueue-missing-halt"]),
    "check-flipped-property": ("d-propflip", ["check", "d-propflip"]),
    "check-json": ("d-magic", ["check", "d-magic", "--json"]),
    "check-no-store": ("tx", ["check", "elsewhere"]),
    "repair-no-store": (
        "tx",
        ["rm", "tx/commitlog"],
        ["rm", "tx/consumequeue"],
        ["rm", "tx/checkpoint"],
        ["repair", "tx"],
        ["repair", "elsewhere"],
    ),
    "check-wrong-option": ("tx", ["check", "tx", "--max-duration", "soon"]),
    "repair-wrong-length": (
        "tx",
        ["repair", "tx", "--queue-file-bytes", "2001"],
        ["repair", "tx", "--segment-bytes", "5"],
        ["repair", "tx", "--index-division", "1", "1"],
    ),
    "report": ("d-zeropage-last", ["report", "d-zeropage-last", "--html", "page.html"]),
    "info-intact": ("roll", ["info", "roll"]),
    "info-crashed": ("roll-halt", ["info", "roll-halt"]),
    "info-no-queues": ("d-nocq", ["info", "d-nocq"]),
    "info-verify": ("d-magic", ["info", "d-magic", "--verify"]),
    "verify-intact": ("roll", ["verify", "roll"]),
    "verify-flipped-body": ("d-bodyflip-first", ["verify", "d-bodyflip-first"]),
    "verify-seal": (
        "roll",
        ["verify", "roll"],
        ["verify", "--seal", "roll"],
        ["verify", "roll"],
        ["verify", "--seal", "roll"],
    ),
    "check-records-only": (
        "roll",
        ["check", "roll", "--records-only"],
        ["seal", "roll"],
        ["check", "roll", "--records-only"],
    ),
    "verify-seal-damaged": ("d-zeropage-first", ["verify", "--seal", "d-zeropage-first"]),
    "tail": (
        "d-zeropage-last",
        ["tail", "d-zeropage-last", "-n", "30"],
        ["tail", "d-zeropage-last", "TopicB", "-n", "2"],
    ),
    "tail-json": ("d-trunclast", ["tail", "d-trunclast", "TopicA", "-n", "1", "--json"]),
    "put": (
        "tx",
        ["put", "tx", "orders", "hello", "--tags", "new", "--key", "k1"],
        ["get", "tx", "orders"],
    ),
    "segments": ("d-zeropage-last", ["inspect", "segments", "d-zeropage-last"]),
    "queues": ("d-cqtrunc", ["inspect", "queues", "d-cqtrunc"]),
    "cq": ("d-cqgarbage", ["inspect", "cq", "d-cqgarbage", "TopicA", "0", "--count", "8"]),
    "log": ("tx", ["inspect", "log", "tx", "--at", "0", "--hex"]),
    "index": ("tx", ["inspect", "index", "tx"]),
    "checkpoint": ("d-stalecheckpoint-halt", ["inspect", "checkpoint", "d-stalecheckpoint-halt"]),
    "config": ("real-conf", ["inspect", "config", "real-conf"]),
    "dump": ("delay", ["dump", "delay"]),
    "get": ("tx", ["get", "tx", "TxTopic", "--count", "2", "--body", "hex"]),
    "query": ("tx", ["query", "tx", "TxTopic", "nothing"]),
    "query-key": ("tx", ["query", "tx", "TxTopic", "txk1"]),
    "du": ("tx", ["inspect", "du", "tx"]),
    "id": ("tx", ["inspect", "id", "7F00000100002A9F0000000000000000"]),
    "explain": ("broker-store", ["explain", "broker-store", "gk"]),
    "tx": ("tx", ["tx", "ls", "tx"]),
    "tx-none": ("broker-store", ["tx", "ls", "broker-store"]),
    "tx-ends": (
        "tx",
        ["tx", "commit", "tx", "TXUNIQ0"],
        ["tx", "commit", "tx", "TXUNIQ0", "--apply"],
        ["tx", "rollback", "tx", "TXUNIQ1", "--apply"],
        ["tx", "commit", "tx", "TXUNIQ0"],
    ),
    "export": (
        "tx",
        ["export", "tx", "-o", "out.jsonl", "--topic", "TxTopic"],
        ["import", "new", "out.jsonl"],
    ),
    "skip-park": (
        "broker-store",
        ["skip", "broker-store", "cg1", "LiveTopic", "0", "--to", "18"],
        ["skip", "broker-store", "cg1", "LiveTopic", "0", "--to", "18", "--apply"],
        ["park", "broker-store", "7F00000100002A9F000000000000999C", "--group", "cg1"],
        ["park", "broker-store", "7F00000100002A9F000000000000999C", "--group", "cg1", "--apply"],
        ["park", "broker-store", "7F00000100002A9F000000000000999C", "--group", "cg1"],
    ),
    "offsets": (
        "broker-store",
        ["offsets", "show", "broker-store", "cg1"],
        ["offsets", "lag", "broker-store"],
        ["offsets", "log", "broker-store"],
        ["offsets", "reset", "broker-store", "cg1", "LiveTopic", "--to", "4"],
        ["offsets", "reset", "broker-store", "cg1", "LiveTopic", "--to", "4", "--apply"],
        ["offsets", "log", "broker-store", "cg1"],
        ["offsets", "restore", "broker-store", "--at", "2026-01-01"],
    ),
    "topic-group": (
        "real-conf",
        ["topic", "ls", "real-conf"],
        ["topic", "create", "real-conf", "Orders", "--queues", "4"],
        ["topic", "alter", "real-conf", "Orders", "--perm", "r"],
        ["topic", "delete", "real-conf", "Orders"],
        ["topic", "delete", "real-conf", "Orders", "--apply"],
        ["group", "ls", "real-conf"],
        ["group", "create", "real-conf", "billing", "--retries", "5"],
        ["group", "alter", "real-conf", "billing", "--no-consume"],
        ["group", "alter", "real-conf", "billing", "--no-consume", "--apply"],
        ["group", "delete", "real-conf", "billing", "--offsets"],
        ["group", "delete", "real-conf", "billing", "--offsets", "--apply"],
    ),
    "retention": (
        "roll",
        ["retention", "plan", "roll", "--older-than", "36500d"],
        ["retention", "plan", "roll", "--older-than", "0s"],
        ["retention", "run", "roll", "--older-than", "0s"],
        ["retention", "run", "roll", "--older-than", "0s", "--apply"],
        ["retention", "unpark", "roll"],
    ),
    "dlq": (
        "broker-store",
        ["dlq", "ls", "broker-store"],
        ["dlq", "show", "broker-store", "--count", "2"],
        ["dlq", "resend", "broker-store"],
        ["dlq", "resend", "broker-store", "--where", "nothing=1", "--apply"],
    ),
    "erase": (
        "tx",
        ["erase", "tx", "TXUNIQ1"],
        ["erase", "tx", "TXUNIQ1", "--apply"],
        ["erase", "tx", "TXUNIQ1", "--apply", "--yes"],
        ["explain", "tx", "TXUNIQ1"],
        ["erase", "tx", "TXUNIQ1"],
        ["erase", "tx", "TXUNIQ1", "--apply", "--yes"],
    ),
    "backup": ("roll", ["backup", "roll", "copy"], ["info", "copy"]),
    "branch": (
        "roll",
        ["branch", "create", "roll", "try"],
        ["branch", "list", "roll"],
        ["branch", "diff", "roll", "try"],
        ["branch", "drop", "roll", "try"],
        ["branch", "drop", "roll", "try", "--apply"],
    ),
    "broken-log": (
        "d-zeropage-first",
        ["check", "d-zeropage-first"],
        ["repair", "d-zeropage-first"],
        ["repair", "d-zeropage-first", "--apply", "--yes"],
        ["check", "d-zeropage-first"],
        ["undo", "d-zeropage-first"],
    ),
    "repair-nothing": ("roll", ["repair", "roll"]),
    "no-log": (
        "real-conf",
        ["rm", "real-conf/commitlog"],
        ["check", "real-conf"],
        ["repair", "real-conf", "--apply", "--yes"],
    ),
    "broken-timer": (
        "real-conf",
        ["rm", "real-conf/timerlog/00000000000000000000"],
        ["check", "real-conf"],
        ["repair", "real-conf", "--apply", "--yes"],
        ["check", "real-conf"],
    ),
    "lost-timercheck": (
        "real-conf",
        ["rm", "real-conf/config/timercheck"],
        ["repair", "real-conf", "--apply", "--yes"],
    ),
    "broken-filter-data": (
        "real-conf",
        ["rm", "real-conf/consumequeue_ext/TopicX/1/00000000000000000000"],
        ["check", "real-conf"],
        ["repair", "real-conf", "--apply", "--yes"],
        ["undo", "real-conf"],
    ),
    "missing-queue": (
        "d-cqqueue-missing-halt",
        ["check", "d-cqqueue-missing-halt"],
        ["repair", "d-cqqueue-missing-halt", "--apply", "--yes"],
        ["check", "d-cqqueue-missing-halt"],
    ),
    "no-queues": (
        "d-nocq-halt",
        ["check", "d-nocq-halt"],
        ["repair", "d-nocq-halt", "--apply", "--yes"],
        ["check", "d-nocq-halt"],
    ),
    "broken-index": (
        "d-indexgarbage-halt",
        ["check", "d-indexgarbage-halt"],
        ["repair", "d-indexgarbage-halt", "--apply", "--yes"],
        ["check", "d-indexgarbage-halt"],
    ),
}
"""The store that is in the current folder, and what is typed there, after ``seglog`` or ``rm -r``."""

TELL_DISK_USE = {"du", "branch"}
"""Dialogues that say what files take on the disk: their store is copied without holes, which takes the same
on each file system."""

VARYING = (
    (re.compile(r"\d+\.\d s, [\d.]+ \w+/s"), "0.1 s, 1.0 MiB/s"),
    (re.compile(r'"elapsedMs":[\d.]+'), '"elapsedMs":1.0'),
    # Times in it take more room or less.
    (re.compile(r"(page\.html, )[\d.]+ KiB"), r"\g<1>8.5 KiB"),
    # Now, in milliseconds and in names and words.
    (re.compile(r"(attic/|erased/)\d{13}"), r"\g<1>1700000000000"),
    (re.compile(r"^(try +|since )[-0-9]{10} [:.0-9]{12}Z", re.MULTILINE), r"\g<1>2026-11-21 12:00:00.000Z"),
    (re.compile(r"[-0-9]{10} [:.0-9]{12}Z(  new  k1)"), r"2026-11-21 12:00:00.000Z\g<1>"),
    (re.compile(r"^[-0-9]{10} [:.0-9]{12}Z(  cg1 )", re.MULTILINE), r"2026-11-21 12:00:00.000Z\g<1>"),
    (re.compile(r"(begins at )[-0-9]{10} [:0-9]{8}( UTC)"), r"\g<1>2026-11-21 12:00:00\g<2>"),
    # What holes save depends on the file system.
    (re.compile(r"^(disk +)\S+ \S+ for files of", re.MULTILINE), r"\g<1>1.0 MiB for files of"),
)


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.chdir(tmp_path)
    yield
    monkeypatch.undo()
    time.tzset()


def remove(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("name", DIALOGUES)
def test_dialogue_is_the_one_that_was_read(name, tmp_path, request):
    store, *typed = DIALOGUES[name]
    if name in TELL_DISK_USE:
        shutil.copytree(golden.shared(str(store)), tmp_path / str(store))
    else:
        golden.extract(str(store), tmp_path)
    told = ""
    for words in typed:
        if words[0] == "rm":
            remove(tmp_path / words[1])
            told += f"$ rm -r {words[1]}\n"
            continue
        ran = CliRunner().invoke(commands, words, prog_name="seglog")
        told += f"$ seglog {' '.join(words)}\n{ran.stdout}{ran.stderr}exit {ran.exit_code}\n"
    told = told.replace(str(tmp_path), "/data")
    for pattern, instead in VARYING:
        told = pattern.sub(instead, told)
    file = FOLDER / f"{name}.txt"
    if request.config.getoption("--rewrite-dialogues"):
        file.write_text(told)
    assert file.read_text() == told


def test_no_dialogue_is_left_of_a_test_that_is_gone():
    assert {file.stem for file in FOLDER.glob("*.txt")} == DIALOGUES.keys()
