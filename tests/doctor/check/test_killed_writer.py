"""A mere kill is no damage: a check finds notes only, wherever the writer was stopped."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner

from seglog.cli.main import commands
from seglog.doctor.check.check import check_store
from seglog.storage.findings.code import Severity
from seglog.storage.store import MessageStore
from tests.support.material import golden
from tests.support.material.stores import SMALL_INDEX, new_clock

_WRITER = """
import os, signal, sys
from seglog.storage.store import MessageStore
store = MessageStore.open(sys.argv[1], segment_size_bytes=1 << 16, queue_file_size_bytes=2000)
for number in range(20):
    store.put("T", b"body", keys=f"k{number}")
store.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def killed(tmp_path):
    """A store of which the writer was killed behind a flush, before it wrote an index file."""
    root = tmp_path / "store"
    for _attempt in range(20):
        ended = subprocess.run([sys.executable, "-c", _WRITER, str(root)], check=False)
        assert ended.returncode == -signal.SIGKILL
        if not (root / "index").exists():
            return root
        shutil.rmtree(root)  # the indexer was quicker
    raise AssertionError("the index was always there")


def codes(root):
    return {finding.code: finding.severity for finding in check_store(root, clock=new_clock()).findings}


def test_a_check_finds_notes_only(killed):
    assert codes(killed) == {"not-closed": Severity.NOTE, "index-due": Severity.NOTE}
    for arguments in (["check"], ["info", "--verify"]):
        assert CliRunner().invoke(commands, [*arguments, str(killed)]).exit_code == 0


def test_the_next_opening_writes_the_index(killed):
    with MessageStore.open(killed) as store:
        assert [message.body for message in store.query("T", "k7")] == [b"body"]
    assert codes(killed) == {}


def last_units(root, count):
    """Returns the only queue file of a store, and where its last units begin."""
    (path,) = (root / "consumequeue" / "T" / "0").iterdir()
    return path, 20 * (20 - count)


@pytest.mark.parametrize("count", [1, 7, 20])
def test_last_units_that_are_missing_are_due(count, killed):
    path, at = last_units(killed, count)
    content = path.read_bytes()
    path.write_bytes(content[:at].ljust(len(content), b"\0"))
    (due,) = [one for one in check_store(killed, clock=new_clock()).findings if one.code == "queue-due"]
    assert (due.severity, due.position_bytes, due.messages) == (Severity.NOTE, at, count)
    for arguments in (["check"], ["info", "--verify"], ["repair"]):
        assert CliRunner().invoke(commands, [*arguments, str(killed)]).exit_code == 0
    with MessageStore.open(killed) as store:
        assert store.recovery.findings[0].code == "queue-due"
        assert [len(store.get("T", 0, at).messages) for at in (0, 19)] == [20, 1]
    assert codes(killed) == {}
    assert path.read_bytes() == content


@pytest.mark.parametrize(("at", "is_closed"), [(13, False), (19, True)], ids=["in the middle", "closed"])
def test_units_that_a_kill_does_not_explain_are_missed(at, is_closed, killed):
    if is_closed:
        MessageStore.open(killed).close()
    path, _end = last_units(killed, 0)
    content = bytearray(path.read_bytes())
    content[20 * at : 20 * at + 20] = bytes(20)
    path.write_bytes(content)
    assert codes(killed)["queue-short"] is Severity.WARNING


def test_an_index_that_was_there_is_missed(killed):
    MessageStore.open(killed).close()
    shutil.rmtree(killed / "index")
    assert codes(killed) == {"index-missing": Severity.WARNING}


@pytest.mark.parametrize("gone", [f"commitlog/{0:020d}", "seglog/lengths.conf"])
def test_a_log_that_a_kill_does_not_explain_lacks_its_index(gone, killed):
    if gone.startswith("commitlog"):
        with MessageStore.open(killed) as store:
            for number in range(900):
                store.put("T", bytes(40), keys=f"k{number}")
        shutil.rmtree(killed / "index")
        (killed / "abort").write_bytes(b"")
        assert len(list((killed / "commitlog").iterdir())) > 1
    (killed / gone).unlink()
    assert codes(killed)["index-missing"] is Severity.WARNING


def test_rocketmq_indexes_at_once(tmp_path):
    root = golden.extract("d-noindex-halt", tmp_path)
    assert codes(root)["index-missing"] is Severity.WARNING


@pytest.fixture
def new_queue(tmp_path):
    """A store that was not closed, of which the last queue has no folder yet."""
    root = tmp_path / "store"
    with MessageStore.open(root, clock=new_clock(), segment_size_bytes=1 << 16, **SMALL_INDEX) as store:
        for number in range(20):
            store.put("T", b"body", keys=f"k{number}")
        store.put("New", b"body")
    shutil.rmtree(root / "consumequeue" / "New")
    (root / "abort").write_bytes(b"")
    return root


def test_a_new_queue_that_has_no_file_yet_is_due(new_queue):
    assert codes(new_queue) == {"not-closed": Severity.NOTE, "queue-due": Severity.NOTE}
    for arguments in (["check"], ["info", "--verify"], ["repair"]):
        assert CliRunner().invoke(commands, [*arguments, str(new_queue)]).exit_code == 0
    with MessageStore.open(new_queue) as store:
        assert [message.body for message in store.get("New", 0, 0).messages] == [b"body"]
    assert codes(new_queue) == {}


def test_a_queue_without_a_file_is_missed_where_others_have_later_units(new_queue):
    MessageStore.open(new_queue).close()
    with MessageStore.open(new_queue) as store:
        store.put("T", b"later")
    shutil.rmtree(new_queue / "consumequeue" / "New")
    (new_queue / "abort").write_bytes(b"")
    assert codes(new_queue)["queue-missing"] is Severity.WARNING
    staged = new_queue / "consumequeue" / "New" / f"0-{0:020d}.new"  # a file that waits for its first unit
    staged.parent.mkdir()
    staged.write_bytes(bytes(20))
    assert codes(new_queue)["queue-due"] is Severity.NOTE
    (new_queue / "abort").unlink()
    assert codes(new_queue)["queue-missing"] is Severity.WARNING


LATER = "29990101000000000"


@pytest.mark.parametrize("size_bytes", [0, 4096, 40 + 4 * 5_000_000 + 20 * 20_000_000])
def test_a_first_index_file_without_an_entry_is_due(size_bytes, killed):
    (killed / "index").mkdir()
    (killed / "index" / LATER).write_bytes(b"")
    os.truncate(killed / "index" / LATER, size_bytes)
    assert codes(killed) == {"not-closed": Severity.NOTE, "index-due": Severity.NOTE}
    for arguments in (["check"], ["info", "--verify"]):
        assert CliRunner().invoke(commands, [*arguments, str(killed)]).exit_code == 0
    with MessageStore.open(killed) as store:
        assert [one.code for one in store.recovery.findings] == ["index-due"]
        assert [message.body for message in store.query("T", "k7")] == [b"body"]
    assert codes(killed) == {}


def test_a_next_index_file_without_an_entry_is_due(killed):
    MessageStore.open(killed).close()
    (first,) = (killed / "index").iterdir()
    begun = killed / "index" / LATER
    # The header of a next file repeats that of the file before, with a count of 1.
    header = first.read_bytes()[:40]
    begun.write_bytes(header[:36] + (1).to_bytes(4, "big"))
    os.truncate(begun, first.stat().st_size)
    assert codes(killed) == {"index-damaged": Severity.WARNING}
    (killed / "abort").write_bytes(b"")
    assert codes(killed) == {"not-closed": Severity.NOTE, "index-due": Severity.NOTE}
    with begun.open("r+b") as file:
        file.seek(100)
        file.write(b"\1")
    assert codes(killed)["index-damaged"] is Severity.WARNING
