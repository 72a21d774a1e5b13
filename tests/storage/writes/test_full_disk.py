"""On a full disk puts are refused cleanly, reads go on, and writes resume with the space; never SIGBUS."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from typing_extensions import override

from seglog.storage.files.files import DiskUsage, RealFiles
from seglog.storage.files.real_file import RealFile
from seglog.storage.store import MessageStore
from tests.support.machine.disks import disk, memory_disk, why_not
from tests.support.machine.patience import patience_s

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small file system")

ROOT = Path(__file__).resolve().parents[3]
WORK = """
    import os, shutil, sys
    from pathlib import Path
    from seglog.errors import FullError
    from seglog.storage.writes.flush import Durability
    from seglog.storage.store import MessageStore

    class Work:
        def __init__(self, root, kind):
            self.ballast, self.path, self.kind = root / "ballast", root / "store", kind
            free = os.statvfs(root)
            self.ballast.write_bytes(bytes(free.f_bavail * free.f_bsize - (2 << 20)))
            self.store = MessageStore.open(
                self.path, segment_size_bytes=65536, queue_file_size_bytes=2000, durability=Durability.SYNC)
            self.acked, self.refused = [], 0

        def put(self, number):
            body = b"%d " % number + bytes(900)
            try:
                if self.kind == "one queue":
                    self.store.put("T", body)
                elif self.kind == "new queues":
                    self.store.put("T%d" % number, body, queue_id=number)
                else:
                    self.store.put_batch("T", [body, body])
                self.acked.append(number)
                return True
            except FullError as error:
                assert error.help
                self.refused += 1
                return False

        def check(self):
            found = [m.body.split()[0] for q in self.store.queues() for o in range(q.min_offset, q.max_offset)
                     for m in self.store.get(q.topic, q.queue_id, o, 1)]
            copies = 2 if self.kind == "batches" else 1
            wanted = sorted(str(n).encode() for n in self.acked for _ in range(copies))
            assert sorted(found) == wanted, (self.kind, len(found), len(wanted))

        def run(self):
            number = 0
            for _ in range(3):
                while self.put(number):
                    number += 1
                for n in range(10_000, 10_020):
                    self.put(n)
                self.check()
                with open(self.ballast, "r+b") as file:
                    file.truncate(max(0, self.ballast.stat().st_size - (1 << 19)))
                assert self.put(number + 1)
                number += 2
            assert self.refused >= 3
            self.check()
            os.unlink(self.ballast)
            self.store.close()
            self.store = MessageStore.open(self.path)
            self.check()
            assert self.put(999_999)
            self.check()
            self.store.close()
            print("done", self.kind)

    for kind in sys.argv[2:]:
        Work(Path(sys.argv[1]), kind).run()
        shutil.rmtree(Path(sys.argv[1]) / "store")
"""
KINDS = ("one queue", "new queues", "batches")


@pytest.fixture(params=["tmpfs", "ext4"])
def small_disk(tmp_path, request):
    """A small file system."""
    if (reason := why_not(request.param)) is not None:
        pytest.skip(reason)
    if request.param == "tmpfs":
        with memory_disk(tmp_path, 4) as path:
            yield path
        return
    with disk(tmp_path, "ext4", 16) as mounted:
        yield mounted.path


def test_full_disk_refuses_puts_serves_reads_and_recovers_with_the_space(small_disk):
    """All but a little of the space is taken by a file that is made shorter and shorter."""
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(WORK), str(small_disk), *KINDS],
        cwd=ROOT, capture_output=True, text=True, timeout=patience_s(100), check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.splitlines() == [f"done {kind}" for kind in KINDS]


NO_INODES = """
    import sys
    from seglog.errors import FullError
    from seglog.storage.store import MessageStore
    store = MessageStore.open(sys.argv[1], segment_size_bytes=65536, queue_file_size_bytes=2000)
    names = 0
    try:
        while True:
            store.put("T%d" % names, b"x")
            names += 1
    except FullError:
        pass
    assert [len(store.get("T%d" % i, 0, 0)) for i in range(names)] == [1] * names
    assert store.put("T0", b"y").queue_offset == 1
    store.close()
    print("done", names)
"""


def test_file_system_without_free_names_is_full_too(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,nr_inodes=60", "none", folder], check=True)
    try:
        ran = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(NO_INODES), str(folder / "store")],
            cwd=ROOT, capture_output=True, text=True, timeout=patience_s(100), check=False,
        )  # fmt: skip
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout.split()[1]) > 5


KEYS = """
    import sys, time
    from pathlib import Path
    from seglog.errors import FullError
    from seglog.storage.store import MessageStore

    root = Path(sys.argv[1])
    ballast = root / "ballast"
    store = MessageStore.open(root / "store", segment_size_bytes=65536, queue_file_size_bytes=2000)
    acked = 0
    for _ in range(5):
        try:
            store.put("T", b"x", keys="k%d" % acked)
            acked += 1
        except FullError:
            pass
        time.sleep(0.3)
    assert list((root / "store" / "index").glob("*")) == []
    ballast.unlink()
    for _ in range(50):
        store.put("T", b"x", keys="k%d" % acked)
        acked += 1
        time.sleep(0.01)
    assert [len(store.query("T", "k%d" % number, 5)) for number in range(acked)] == [1] * acked
    store.close()
    print("done", acked)
"""


def test_an_index_that_found_no_space_to_begin_begins_once_there_is_some(tmp_path):
    with memory_disk(tmp_path, 40) as path:
        (path / "ballast").write_bytes(bytes(28 << 20))
        ran = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(KEYS), str(path)],
            cwd=ROOT, capture_output=True, text=True, timeout=patience_s(100), check=False,
        )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout.split()[1]) >= 50


class IndexFilesMade(RealFiles):
    """Counts the index files that were begun; says that all but a little of the disk is in use."""

    def __init__(self) -> None:
        self.begun = 0

    @override
    def usage(self, path: Path) -> DiskUsage:
        return DiskUsage(1 << 40, 4 << 20)

    @override
    def create(self, path: Path, size_bytes: int) -> RealFile:
        self.begun += path.parent.name == "index"
        return super().create(path, size_bytes)


def test_an_index_that_finds_no_space_takes_none_that_puts_could_need(tmp_path):
    files = IndexFilesMade()
    with MessageStore.open(
        tmp_path / "store", files=files, segment_size_bytes=1 << 20, queue_file_size_bytes=2000
    ) as store:
        for number in range(20):
            store.put("T", b"body", properties={"KEYS": f"k{number}"})
        assert [message.body for message in store.query("T", "k7")] == [b"body"]
        assert files.begun == 0
    with MessageStore.open(tmp_path / "store") as store:
        assert len(store.query("T", "k7")) == 1
        assert [path.name for path in (tmp_path / "store" / "index").iterdir()]
