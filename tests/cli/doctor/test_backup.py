"""``seglog backup``: whole, also of a store that is written to; neither side changes the other."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import pytest

from seglog import Broker, Durability
from seglog.broker.offsets.offset_history_query import OFFSET_HISTORY
from seglog.doctor.check.verify import verify_store
from seglog.doctor.copies.backup import make_backup
from seglog.errors import Ending, InvalidArgumentError, NotFoundError
from seglog.storage.files.store_root import StoreRoot
from seglog.storage.format.ours import decode_offsets
from seglog.storage.store import MessageStore
from tests.doctor.check.test_lengths import served as served_of
from tests.doctor.check.test_misnamed import call
from tests.support.command_line import Seglog
from tests.support.machine.children import end
from tests.support.machine.read_only_disk import on_read_only_disk
from tests.support.material import golden
from tests.support.material.lives import live
from tests.support.material.stores import SMALL_INDEX, fill, served
from tests.support.narrow import not_none


def test_a_store_that_nobody_has_open(seglog: Seglog, tmp_path):
    life = live(tmp_path / "s", others=200)
    assert verify_store(life.path, seal=True).sealed
    before = golden.tree_digest(life.path)
    ran = seglog("backup", life.path, tmp_path / "b", "--json")
    assert ran.exit_code == 0, ran.stderr
    assert golden.tree_digest(life.path) == before
    done = ran.lines[0]
    assert (done["hot"], done["losses"]) == (False, [])
    assert done["linkedFiles"] > 1
    copied = golden.file_digest(tmp_path / "b")
    assert copied == {
        name: digest
        for name, digest in golden.file_digest(life.path).items()
        if name not in ("lock", "seglog/recovery-point")
    }
    assert (tmp_path / "b" / "commitlog" / f"{0:020d}").stat().st_nlink == 2
    with MessageStore.open(life.path, read_only=True) as one, MessageStore.open(tmp_path / "b") as two:
        assert two.recovery.mode == "normal"
        assert served(one) == served(two)


def test_neither_side_changes_the_other(seglog: Seglog, tmp_path):
    life = live(tmp_path / "s", others=200)
    assert seglog("backup", life.path, tmp_path / "b").exit_code == 0
    backup = golden.tree_digest(tmp_path / "b")
    with MessageStore.open(life.path) as store:
        fill(store, 400)
    assert seglog("erase", life.path, "order-1", "--apply", "--yes").exit_code == 0
    assert golden.tree_digest(tmp_path / "b") == backup
    store_now = golden.tree_digest(life.path)
    with MessageStore.open(tmp_path / "b") as store:
        fill(store, 400)
    assert golden.tree_digest(life.path) == store_now


def test_commits_after_a_backup_do_not_reach_it(seglog: Seglog, tmp_path):
    """A broker keeps the file of its history open, and writes to it."""
    history = tmp_path / "b" / OFFSET_HISTORY / f"{0:020d}"
    with Broker.open(tmp_path / "s", small=True, durability=Durability.SYNC) as broker:
        broker.store.put_batch("T", [b"1", b"2"], queue_id=0)
        broker.offsets.commit("g", "T", 0, 1)
        broker.settle().wait()
        assert seglog("backup", broker.path, tmp_path / "b").exit_code == 0
        backup = history.read_bytes()
        broker.offsets.commit("g", "T", 0, 2)
        broker.settle().wait()
    assert history.read_bytes() == backup
    assert decode_offsets(backup).offsets == {("g", "T", 0): 1}
    with Broker.open(tmp_path / "b", small=True) as broker:
        assert broker.offsets.query("g", "T", 0) == 1


@pytest.mark.parametrize(
    "name", ["roll", "roll-halt", "broker-store", "comp", "innerbatch", "d-zeropage-first"]
)
def test_real_stores_are_served_alike(seglog: Seglog, tmp_path, name):
    path = golden.extract(name, tmp_path)
    ran = seglog("backup", path, tmp_path / "b", "--json")
    assert ran.exit_code == (Ending.LOSS if name.startswith("d-") else 0), ran.stderr
    with (
        MessageStore.open(path, read_only=True) as one,
        MessageStore.open(tmp_path / "b", read_only=True) as two,
    ):
        assert served(one) == served(two)
        assert one.recovery.findings == two.recovery.findings


@pytest.mark.parametrize("names", [(1, 0, 2, 3, 4), (1, 2, 3, 4, 0), (0, 1, 2, 3, 7), (1, 2, 3, 4, 5)])
@pytest.mark.parametrize("is_open", [False, True])
def test_files_under_each_others_names_are_carried_as_they_are(seglog: Seglog, tmp_path, names, is_open):
    path = golden.extract("roll", tmp_path)
    whole = served_of(path)
    call(path, names)
    with ExitStack() as stack:
        if is_open:
            stack.callback(StoreRoot(path).lock(path).release)
        ran = seglog("backup", path, tmp_path / "b", "--json")
    assert ran.exit_code == 0, ran.stdout
    done = ran.lines[0]
    moved = sum(number != name for number, name in enumerate(names))
    assert (done["hot"], done["records"], done["losses"]) == (is_open, 400, [])
    assert done["misnamedFiles"] == moved
    logs = [golden.file_digest(one / "commitlog") for one in (path, tmp_path / "b")]
    assert logs[0] == logs[1]
    assert served_of(tmp_path / "b") == whole
    told = seglog("backup", path, tmp_path / "again").stdout
    assert f"{moved} file" in told
    assert "seglog repair" in told


def test_what_is_no_file_of_the_log_is_carried_too(seglog: Seglog, tmp_path):
    path = golden.extract("roll", tmp_path)
    (path / "commitlog" / "notes.txt").write_bytes(b"why the disk was changed")
    (path / "commitlog" / f"{100:020d}").write_bytes(b"no place that a file can have")
    assert seglog("backup", path, tmp_path / "b").exit_code == 0
    logs = [golden.file_digest(one / "commitlog") for one in (path, tmp_path / "b")]
    assert logs[0] == logs[1]


def test_copies_share_nothing(seglog: Seglog, tmp_path):
    life = live(tmp_path / "s", others=200)
    done = seglog("backup", life.path, tmp_path / "b", "--copy", "--json").lines[0]
    assert done["linkedFiles"] == 0
    assert all(file.stat().st_nlink == 1 for file in (tmp_path / "b").rglob("*") if file.is_file())


def test_a_backup_of_an_open_store_holds_what_was_acknowledged_before(tmp_path):
    path = tmp_path / "s"
    with MessageStore.open(
        path, segment_size_bytes=1 << 16, queue_file_size_bytes=2000, **SMALL_INDEX
    ) as store:
        acknowledged = {}
        stop = threading.Event()

        def write():
            number = 0
            while not stop.is_set():
                put = store.put("t", b"%d " % number * 20, queue_id=number % 3, keys=f"k{number}")
                acknowledged[put.phy_offset] = number
                number += 1
                time.sleep(0.0002)

        threads = [threading.Thread(target=write)]
        threads[0].start()
        try:
            for turn in range(4):
                while len(acknowledged) < 500 * (turn + 1):
                    time.sleep(0.001)
                before = dict(acknowledged)
                done = make_backup(StoreRoot(path), path, tmp_path / f"b{turn}")
                assert done.is_hot
                with MessageStore.open(tmp_path / f"b{turn}", read_only=True) as backup:
                    codes = {one.code for one in backup.recovery.findings if one.severity.value == "loss"}
                    assert codes == set()
                    assert backup.max_phy_offset == done.end_phy_offset
                    found = {m.phy_offset for queue in served(backup).values() for m in queue}
                assert before.keys() <= found
        finally:
            stop.set()
            threads[0].join()
    with MessageStore.open(tmp_path / "b3") as backup:
        assert backup.recovery.mode == "abnormal"
        assert backup.recovery.cut_bytes == 0
        assert backup.put("t", b"goes on").queue_offset == backup.max_offset("t", 0) - 1


WRITER = """
import sys
from seglog.storage.store import MessageStore
with MessageStore.open(sys.argv[1], segment_size_bytes=65536, queue_file_size_bytes=2000) as store:
    number = 0
    while True:
        put = store.put("t", b"%d " % number * 30, queue_id=number % 3)
        print(put.phy_offset, flush=True)
        number += 1
"""


def test_a_backup_of_a_store_that_another_process_has_open(seglog: Seglog, tmp_path, start_child):
    writer = start_child([sys.executable, "-c", WRITER, tmp_path / "s"], stdout=subprocess.PIPE, text=True)
    places = [int(not_none(writer.stdout).readline()) for _number in range(2000)]
    ran = seglog("backup", tmp_path / "s", tmp_path / "b", "--json")
    end(writer)
    assert ran.exit_code == 0, ran.stderr
    done = json.loads(ran.stdout)
    assert (done["hot"], done["losses"]) == (True, [])
    with MessageStore.open(tmp_path / "b", read_only=True) as backup:
        assert set(places) <= {m.phy_offset for queue in served(backup).values() for m in queue}


def test_a_store_on_a_disk_that_is_mounted_for_reading(command_line: list[str], tmp_path):
    life = live(tmp_path / "s", others=200)
    words = [*command_line, "backup", tmp_path / "disk" / "store", tmp_path / "b"]
    ran = on_read_only_disk(tmp_path, *words)
    assert ran.returncode == 0, ran.stderr
    assert b"cannot be written here, so it was not locked" in ran.stdout
    copied = golden.file_digest(tmp_path / "b")
    assert copied == {
        name: digest
        for name, digest in golden.file_digest(life.path).items()
        if name not in ("lock", "seglog/recovery-point")
    }


def test_a_store_that_is_written_to_beside_a_mount_for_reading(command_line: list[str], tmp_path):
    with MessageStore.open(tmp_path / "s", segment_size_bytes=1 << 16, **SMALL_INDEX) as store:
        written = fill(store, 50)
        words = [*command_line, "backup", tmp_path / "disk" / "store", tmp_path / "b", "--json"]
        ran = on_read_only_disk(tmp_path, *words, is_same=True)
    assert ran.returncode == 0, ran.stderr
    done = json.loads(ran.stdout)
    assert (done["hot"], done["locked"], done["records"]) == (True, False, len(written))


def test_what_makes_no_sense_is_refused(seglog: Seglog, tmp_path):
    life = live(tmp_path / "s")
    before = golden.tree_digest(life.path)
    assert seglog("backup", tmp_path / "nosuch", tmp_path / "b").exit_code == NotFoundError.exit_code
    (tmp_path / "link").symlink_to(life.path)
    for target in ("s", "s/commitlog/b", "s/b", "s/seglog/b", "s/seglog/branches/b", "link/seglog/b"):
        assert seglog("backup", life.path, tmp_path / target).exit_code == InvalidArgumentError.exit_code
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    assert seglog("backup", life.path, tmp_path / "full").exit_code == InvalidArgumentError.exit_code
    assert golden.tree_digest(life.path) == before
    assert not (tmp_path / "b").exists()


def test_what_an_interrupted_backup_left_is_taken_away(seglog: Seglog, tmp_path):
    life = live(tmp_path / "s")
    (tmp_path / "b.unfinished").mkdir()
    (tmp_path / "b.unfinished" / "x").touch()
    assert seglog("backup", life.path, tmp_path / "b").exit_code == 0
    assert not (tmp_path / "b.unfinished").exists()
    assert not (tmp_path / "b" / "x").exists()
