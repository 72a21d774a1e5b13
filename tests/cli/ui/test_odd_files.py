"""Links, pipes and devices in a store: no command waits for one, follows one or writes through one."""

from __future__ import annotations

import os
import shutil
import signal
import stat
from contextlib import contextmanager

import pytest

from seglog.errors import FileKindError
from seglog.storage.store import MessageStore
from tests.support.command_line import Seglog
from tests.support.material.stores import SMALL, SMALL_INDEX, fill
from tests.support.rows import every_row

LIMIT_S = 20
BUG = 70
CANARY = b"not for the store"

READING = [
    ["info"],
    ["info", "--verify"],
    ["check"],
    ["get", "Topic0"],
    ["query", "Topic0", "key-1"],
    ["tail"],
    ["dump"],
    ["dump", "--log"],
    ["segments"],
    ["queues"],
    ["cq", "show", "Topic0", "0"],
    ["log", "show", "--at", "0"],
    ["index", "show"],
    ["checkpoint"],
    ["config", "show"],
    ["config", "show", "topics"],
    ["du"],
    ["verify"],
    ["repair"],
    ["undo", "--list"],
    ["topic", "ls"],
    ["group", "ls"],
    ["offsets", "lag"],
    ["offsets", "log"],
    ["retention", "plan"],
    ["retention", "unpark"],
    ["dlq", "ls"],
    ["locks"],
    ["tx", "ls"],
    ["branch", "list"],
    ["explain", "key-1"],
    ["erase", "key-1"],
]
WRITING = [
    ["put", "Topic0", "body"],
    ["repair", "--apply", "--yes"],
    ["undo"],
    ["erase", "key-1", "--apply", "--yes"],
    ["topic", "create", "Other"],
    ["group", "create", "Group"],
    ["retention", "run", "--apply"],
    ["verify", "--seal"],
    ["branch", "create", "name"],
]

PLACES = [
    "checkpoint",
    "abort",
    "lock",
    "config/topics.json",
    "config/delayOffset.json",
    "config/subscriptionGroup.json",
    "commitlog/00000000000000008192",
    "consumequeue/Topic0/7/00000000000000000000",
    "index/20261122120000000",
    "seglog/holes",
    "seglog/recovery-point",
    "seglog/locks.json",
    "seglog/undo/1/journal",
    "anything",
]


def pipe(path, outside):
    os.mkfifo(path)


def link(path, outside):
    path.symlink_to(outside / "keys")


def device(path, outside):
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero
    except PermissionError:
        pytest.skip("only root makes devices, where the system lets it")


KINDS = [pipe, link, device]


@pytest.fixture(autouse=True)
def in_time():
    """Ends a command that waits for the other end of a pipe."""

    def late(_signal, _frame):
        raise TimeoutError("the command did not end")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LIMIT_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def row():
    """Tries each row of a table within the limit."""
    with every_row() as tried:

        @contextmanager
        def in_time(*names):
            with tried(*names):
                signal.alarm(LIMIT_S)
                yield

        yield in_time


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "keys").write_bytes(CANARY)
    yield folder
    assert [path.name for path in folder.iterdir()] == ["keys"]
    assert (folder / "keys").read_bytes() == CANARY


@pytest.fixture
def root(tmp_path):
    with MessageStore.open(tmp_path / "store", **SMALL, **SMALL_INDEX) as store:
        fill(store, 30)
    return tmp_path / "store"


def put_odd(root, make, places, outside):
    for place in places:
        path = root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        make(path, outside)


def tree(root):
    return {
        str(path.relative_to(root)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in root.rglob("*")
    }


def on(command, root):
    words = command[:2] if command[0] in GROUPS else command[:1]
    return [*words, root, *command[len(words) :]]


GROUPS = {"branch", "config", "cq", "dlq", "group", "index", "log", "offsets", "retention", "topic", "tx"}


@pytest.mark.parametrize("make", KINDS)
def test_a_reading_command_over_a_store_full_of_them_ends_and_reads_none(
    seglog: Seglog, root, outside, make, row
):
    put_odd(root, make, PLACES, outside)
    before = tree(root)
    for command in READING:
        with row(*command):
            ran = seglog(*on(command, root))
            assert ran.exit_code not in (BUG, 2), ran.stderr
            assert "Traceback" not in ran.stderr
            assert CANARY.decode() not in ran.stdout + ran.stderr
            assert tree(root) == before


@pytest.mark.parametrize("make", KINDS)
def test_a_writing_command_refuses_the_store_and_changes_nothing(seglog: Seglog, root, outside, make, row):
    put_odd(root, make, PLACES, outside)
    before = tree(root)
    for command in WRITING:
        with row(*command):
            ran = seglog(*on(command, root))
            assert ran.exit_code == FileKindError.exit_code, ran.stderr
            assert "Traceback" not in ran.stderr
            assert tree(root) == before


@pytest.mark.parametrize("make", KINDS)
def test_one_of_them_is_a_finding_and_keeps_writers_out(seglog: Seglog, root, outside, make, row, tmp_path):
    for number, place in enumerate(PLACES):
        with row(place):
            one = shutil.copytree(root, tmp_path / str(number))
            put_odd(one, make, [place], outside)
            lines = seglog("check", one, "--json").lines
            assert {line.get("file") for line in lines if line.get("code") == "file-kind"} == {place}
            before = tree(one)
            ran = seglog("put", one, "Topic0", "body")
            assert ran.exit_code == FileKindError.exit_code, ran.stdout + ran.stderr
            assert place in ran.stderr
            assert tree(one) == before


def test_a_mere_open_for_writing_leaves_what_checkpoint_abort_lock_and_index_link_to(root, outside):
    for place in ("checkpoint", "abort", "lock", "index"):
        path = root / place
        kept = root.parent / f"kept-{place}"
        if path.exists():
            path.rename(kept)
        path.symlink_to(outside if place == "index" else outside / "keys")
        with pytest.raises(FileKindError):
            MessageStore.open(root)
        path.unlink()
        if kept.exists():
            kept.rename(path)
    MessageStore.open(root).close()


def test_a_folder_of_the_store_that_lies_elsewhere_is_served_if_it_is_named(seglog: Seglog, root, tmp_path):
    served = seglog("get", root, "Topic0").stdout
    assert served
    (root / "commitlog").rename(tmp_path / "disk2")
    (root / "commitlog").symlink_to(tmp_path / "disk2")

    refused = seglog("put", root, "Topic0", "body")
    assert refused.exit_code == FileKindError.exit_code
    assert "--follow commitlog" in refused.stderr
    assert seglog("get", root, "Topic0", "--follow", "commitlog").stdout == served
    assert seglog("put", root, "Topic0", "body", "--follow", "commitlog").exit_code == 0
    assert seglog("check", root, "--follow", "commitlog").exit_code == 0
    assert seglog("tail", root, "--follow-folder", "commitlog").exit_code == 0
    for command, option in (("info", "--follow"), ("check", "--follow"), ("tail", "--follow-folder")):
        refused = seglog(command, root, option, "comitlog")
        assert (refused.exit_code, f"{option} comitlog: there is no comitlog in" in refused.stderr) == (
            2,
            True,
        )
    with MessageStore.open(root, follow=["commitlog"]) as store:
        assert store.put("Topic0", b"more").queue_offset > 0


def test_dev_zero_as_a_table_is_never_read(seglog: Seglog, root, outside):
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "topics.json").symlink_to("/dev/zero")
    for command in (["topic", "ls"], ["config", "show"], ["check"], ["info"]):
        assert seglog(*on(command, root)).exit_code != BUG
