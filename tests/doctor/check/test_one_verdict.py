"""A check, a dry run and a repair say the same of a store; what a repair ends well with can be written to."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from seglog.storage.store import MessageStore
from tests.support.damage.broker_damage import DAMAGES
from tests.support.damage.treatment import (
    MAKERS,
    Judged,
    Treatment,
    damaged,
    damages_of,
    judged,
    run,
    treat,
    treated,
)
from tests.support.material import golden
from tests.support.material.stores import SMALL, SMALL_INDEX, new_clock
from tests.support.rows import every_row

SIZES = ("--queue-file-bytes", "2000", "--index-division", "500", "2000")
AS_OPENING = {
    "finish what a crash left, and take the abort file away",
    "cut a torn write and zero what is behind it",
    "remove files of the log after its end",
    "write the key index from the log",
    "write queue files from the log",
}
"""What is to do where nothing is wrong: opening the store for writing does it too."""


SAVES = {"saves", "keeps"}
"""Words of an action that saves messages, or keeps those behind it."""


def agreed(said: Judged) -> int:
    """Holds a check of a store against a dry run of a repair; returns the verdict of both."""
    checked = said.check.exit_code
    if said.dry_run is None:
        return checked
    planned, shown = said.dry_run.exit_code, said.dry_run.stdout
    assert (checked == 0) == (planned == 0), shown
    assert not (SAVES & set(shown.split()) and "; 0 messages saved" in shown), shown
    if planned == 0:
        assert shown.startswith("nothing to do")
        assert "left as it is" not in shown
        assert said.dry_run.steps <= AS_OPENING
    return checked


def hold(done: Treatment) -> None:
    """Holds the rule of exit codes for a store, before and after its repair."""
    agreed(done.before)
    after = agreed(done.after)
    if done.repair.exit_code in {0, 1}:
        assert after == done.repair.exit_code, done.repair.stdout
    if done.repair.exit_code == 0:
        assert done.put is not None
        assert done.last is not None
        assert done.put.exit_code == 0
        assert agreed(done.last) == 0


def test_verdicts_agree_on_stores_of_rocketmq():
    with every_row() as row:
        for name in golden.golden_names():
            with row(name):
                hold(treated(name))


def test_verdicts_agree_where_lengths_are_given():
    with every_row() as row:
        for name in ("d-nocq", "d-nocq-halt", "d-noindex", "d-noindex-halt"):
            with row(name):
                hold(treated(name, *SIZES))


@pytest.mark.parametrize("make", MAKERS)
def test_verdicts_agree_on_damaged_stores(make):
    with every_row() as row:
        for name in damages_of(make):
            with row(name):
                hold(treated(name))


@pytest.mark.parametrize("gone", [("consumequeue", "index"), ("consumequeue", "index", "checkpoint")])
@pytest.mark.parametrize("name", ["roll", "roll-halt"])
def test_verdicts_agree_where_all_that_is_made_from_the_log_is_gone(name, gone, tmp_path):
    root = golden.extract(name, tmp_path)
    for part in gone:
        shutil.rmtree(root / part) if (root / part).is_dir() else (root / part).unlink()
    hold(treat(root))


@pytest.mark.parametrize("change", [lambda seal: seal[:0], lambda seal: seal + b"x"], ids=["empty", "longer"])
@pytest.mark.parametrize("is_alone", [True, False])
def test_verdicts_agree_on_seals(change, is_alone, tmp_path):
    root = golden.extract("roll", tmp_path)
    assert run("verify", "--seal", root)[0] == 0
    seal = min((root / "seglog" / "seals").glob("*.seal"))
    seal.write_bytes(change(seal.read_bytes()))
    if not is_alone:
        shutil.rmtree(root / "consumequeue")
    hold(treat(root))


def test_verdicts_agree_where_a_pipe_is_among_the_undo_packs(tmp_path):
    root = golden.extract("roll", tmp_path)
    (root / "seglog" / "undo").mkdir(parents=True)
    os.mkfifo(root / "seglog" / "undo" / "2")
    hold(treat(root))


KILLED = """
import os, signal, sys
from seglog import MessageStore
store = MessageStore.open(sys.argv[1], segment_size_bytes=1 << 20, queue_file_size_bytes=2000)
for number in range(3000):
    store.put("T", b"x", keys=f"k{number}")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_writer_that_was_killed_before_its_first_flush_is_no_damage(tmp_path):
    root = tmp_path / "s"
    ended = subprocess.run([sys.executable, "-c", KILLED, str(root)], check=False)
    assert ended.returncode == -9
    assert run("check", root)[0] == 0
    assert run("repair", root)[0] == 0
    assert run("repair", "--apply", "--yes", root)[0] == 0
    assert run("check", root)[0] == 0
    assert run("put", root, "Probe", "text")[0] == 0
    assert run("check", root)[0] == 0


@pytest.mark.parametrize("way", [("put", "T", "x"), ("repair", "--apply", "--yes")])
def test_an_index_file_may_end_with_a_record_that_is_lost(tmp_path, way):
    root = golden.extract("roll", tmp_path)
    last = max((root / "commitlog").iterdir())
    size = last.stat().st_size
    os.truncate(last, 0)
    os.truncate(last, size)
    command, *words = way
    assert run(command, root, *words)[0] == 0
    assert agreed(judged(root)) == 0
    assert run("repair", root)[1].startswith("nothing to do\n")


def of_index(rows):
    """Returns what findings say of the index, without that of records."""
    told = [row for row in rows if str(row.get("code", "")).startswith(("index", "record-keys"))]
    return sorted(json.dumps({**row, "kind": None}, sort_keys=True) for row in told)


def test_info_and_check_say_the_same_of_a_damaged_index(tmp_path):
    with every_row() as row:
        for name in DAMAGES:
            if "index" in name:
                with row(name):
                    root = damaged(name, tmp_path / name)
                    checked = treated(name).before.check.lines
                    (shown,) = map(json.loads, run("info", root, "--verify", "--json")[1].splitlines())
                    told = of_index({"kind": None, **finding} for finding in shown["findings"])
                    assert of_index(checked) == told
                    assert told


def test_verdicts_agree_on_op_records_that_settle_no_half_message(tmp_path):
    root = tmp_path / "store"
    with MessageStore.open(root, clock=new_clock(), **SMALL, **SMALL_INDEX) as store:
        store.put("RMQ_SYS_TRANS_HALF_TOPIC", b"half")
        store.put("RMQ_SYS_TRANS_OP_HALF_TOPIC", b"9,", tags="d")
    assert agreed(judged(root)) == 1
