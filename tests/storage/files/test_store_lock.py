"""One process writes to a store: a second one is refused, a forked child cannot interfere."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from typing_extensions import override

from seglog.errors import StoreLockedError
from seglog.storage.files.files import RealFiles
from seglog.storage.files.store_lock import lock_holder
from seglog.storage.store import MessageStore
from tests.support.crash.child import Child
from tests.support.machine.patience import patience_s
from tests.support.material.golden import tree_digest
from tests.support.material.stores import SMALL, OpenStore, Written, fill, read_all, served

ROOT = Path(__file__).resolve().parents[3]


def test_second_writer_in_the_same_process_is_refused_and_the_first_unharmed(open_store: OpenStore):
    store = open_store()
    fill(store, 20)
    before = tree_digest(store.path)
    for path in (store.path, store.path / ".." / store.path.name):
        with pytest.raises(StoreLockedError, match="open for writing"):
            MessageStore.open(path)
    assert tree_digest(store.path) == before
    assert store.put("Topic0", b"x").queue_offset == 5
    with pytest.raises(StoreLockedError):
        MessageStore.open(store.path)


def test_second_writer_through_a_link_is_refused(open_store: OpenStore, tmp_path):
    store = open_store()
    (tmp_path / "link").symlink_to(store.path)
    with pytest.raises(StoreLockedError):
        MessageStore.open(tmp_path / "link")


def test_writer_of_another_process_is_named_and_unharmed(tmp_path):
    with Child(tmp_path / "store", **SMALL) as writer:
        writer.ask("put", topic="T")
        assert lock_holder(tmp_path / "store") is not None
        before = tree_digest(tmp_path / "store")
        with pytest.raises(StoreLockedError) as refused:
            MessageStore.open(tmp_path / "store")
        assert "read_only=True" in refused.value.help
        assert tree_digest(tmp_path / "store") == before
        assert writer.ask("put", topic="T") == {"first": 1, "last": 1}


def test_our_store_keeps_another_process_out(open_store: OpenStore):
    store = open_store()
    with Child(store.path) as other:
        assert other.opened["error"] == "StoreLockedError"
    assert store.put("T", b"x").queue_offset == 0


@pytest.mark.parametrize("end", ["close", "kill"])
def test_lock_goes_with_its_holder(tmp_path, end):
    with Child(tmp_path / "store", **SMALL) as writer:
        writer.ask("put", topic="T")
        if end == "close":
            writer.ask("close")
        else:
            writer.kill()
        assert lock_holder(tmp_path / "store") is None
        with MessageStore.open(tmp_path / "store") as store:
            assert len(read_all(store, "T", 0)) == 1


def test_readers_need_no_lock_and_leave_none(open_store: OpenStore):
    store = open_store()
    store.put("T", b"x")
    for _ in range(3):
        open_store(read_only=True)
    store.close()
    open_store()


def test_failed_open_gives_the_lock_back(open_store: OpenStore):
    store = open_store()
    store.put("T", b"x")
    store.close()
    for _ in range(2):
        with pytest.raises(Exception, match="but the files of"):
            MessageStore.open(store.path, segment_size_bytes=8192)
    open_store()


class OtherWasFaster(RealFiles):
    """Lets another writer make, fill and close the store just before ours takes the lock."""

    def __init__(self) -> None:
        self.written: list[Written] | None = None

    @override
    def make_dirs(self, path: Path, *, sync: bool = True) -> None:
        if self.written is None:
            self.written = []
            with MessageStore.open(path, **SMALL) as store:
                self.written = fill(store, 40)
        super().make_dirs(path, sync=sync)


def test_store_that_another_process_made_meanwhile_is_not_made_anew(tmp_path):
    files = OtherWasFaster()
    with MessageStore.open(tmp_path / "store", files=files, **SMALL) as store:
        assert store.recovery.mode == "normal"
        assert sum(map(len, served(store).values())) == len(files.written or ()) == 40
        store.put("Topic0", b"x")


FORKED = """
    import os, sys
    from seglog.errors import ClosedError
    from seglog.storage.store import MessageStore
    store = MessageStore.open(sys.argv[1], segment_size_bytes=4096)
    store.put("T", b"parent before")
    child = os.fork()
    if child == 0:
        try:
            store.put("T", b"child")
        except ClosedError:
            print("refused", flush=True)
        store.close()
        os._exit(0)
    os.waitpid(child, 0)
    print("abort kept" if os.path.exists(sys.argv[1] + "/abort") else "abort gone", flush=True)
    try:
        MessageStore.open(sys.argv[1])
    except Exception as error:
        print(type(error).__name__, flush=True)
    print(store.put("T", b"parent after").queue_offset, flush=True)
    holder = os.fork()
    if holder == 0:
        sys.stdin.read()
        os._exit(0)
    store.close()
    MessageStore.open(sys.argv[1]).close()
    print("opened beside a living child", flush=True)
    sys.stdout.flush()
    os.kill(holder, 9)
    os.waitpid(holder, 0)
"""


def test_a_store_that_was_closed_is_free_while_a_child_has_its_descriptors_still(tmp_path, start_child):
    """Between its fork and its exec every child has them; a busy machine makes that time long."""
    store = MessageStore.open(tmp_path / "store", **SMALL)
    lock = (tmp_path / "store" / "lock").resolve()
    descriptors = [
        int(each.name)
        for each in Path("/proc/self/fd").iterdir()
        if each.is_symlink() and each.resolve() == lock
    ]
    assert descriptors
    start_child([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=descriptors)
    store.close()
    MessageStore.open(tmp_path / "store").close()


def test_forked_child_can_neither_write_nor_unlock_nor_mark_the_store_as_closed(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FORKED), str(tmp_path / "store")],
        cwd=ROOT, stdin=subprocess.PIPE, capture_output=True, text=True, timeout=patience_s(60), check=False,
    )  # fmt: skip
    assert ran.stderr == ""
    assert ran.stdout.splitlines() == [
        "refused", "abort kept", "StoreLockedError", "1", "opened beside a living child",
    ]  # fmt: skip
    with MessageStore.open(tmp_path / "store") as store:
        assert [m.body for m in read_all(store, "T", 0)] == [b"parent before", b"parent after"]
