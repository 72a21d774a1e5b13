"""A store is hostile input: no call on its files leads out of it, waits for a pipe or opens a device."""

from __future__ import annotations

import errno
import gc
import os
import signal
import stat
import threading
import time
from pathlib import Path

import pytest

from seglog.errors import FileKindError, InvalidArgumentError, StoreLockedError, UnsafePathError
from seglog.storage.directory.reading_root import ReadingRoot
from seglog.storage.files import beneath
from seglog.storage.files.files import Stamp
from seglog.storage.files.store_root import StoreRoot
from tests.support.machine.openers import OPENERS
from tests.support.material.special_files import SPECIAL_KINDS
from tests.support.rows import every_row

CANARY = b"not for the store"


@pytest.fixture(params=OPENERS)
def opener(request):
    return request.param


@pytest.fixture
def outside(tmp_path):
    """A folder beside the store that must stay as it is."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "keys").write_bytes(CANARY)
    os.utime(folder / "keys", ns=(1_000, 2_000))
    (folder / "keys").chmod(0o640)
    return folder


@pytest.fixture
def root(tmp_path):
    made = tmp_path / "store"
    (made / "config").mkdir(parents=True)
    (made / "config" / "topics.json").write_bytes(b"{}")
    (made / "checkpoint").write_bytes(b"mark")
    return made


@pytest.fixture
def files(root, opener):
    return StoreRoot(root, opener=opener)


def snapshot(folder):
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (status.st_mode, status.st_mtime_ns, content)
    return found


def open_descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture(autouse=True)
def in_time():
    """Ends a test that waits for the other end of a pipe."""

    def late(_signal, _frame):
        raise TimeoutError("the call did not end")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 60, 60)  # again, for the next row of a table
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def unchanged(outside):
    before = snapshot(outside)
    yield
    assert snapshot(outside) == before


CALLS = {
    "open": lambda files, path, other: files.open(path, writable=False),
    "open for writing": lambda files, path, other: files.open(path, writable=True),
    "create": lambda files, path, other: files.create(path, 8),
    "read_file": lambda files, path, other: files.read_file(path),
    "write_file": lambda files, path, other: files.write_file(path, b"evil"),
    "make_dirs": lambda files, path, other: files.make_dirs(path / "made"),
    "rename": lambda files, path, other: files.rename(path, other),
    "rename to": lambda files, path, other: files.rename(other, path),
    "link": lambda files, path, other: files.link(path, files, other.with_name("second")),
    "link to": lambda files, path, other: files.link(other, files, path),
    "remove": lambda files, path, other: files.remove(path),
    "remove_dir": lambda files, path, other: files.remove_dir(path),
    "remove_tree": lambda files, path, other: files.remove_tree(path),
    "exchange": lambda files, path, other: files.exchange(path, other),
    "sync_dir": lambda files, path, other: files.sync_dir(path.parent),
    "usage": lambda files, path, other: files.usage(path.parent),
    "list_dir": lambda files, path, other: files.list_dir(path.parent),
    "exists": lambda files, path, other: files.exists(path),
    "is_dir": lambda files, path, other: files.is_dir(path),
    "stamp": lambda files, path, other: files.stamp(path),
    "set_stamp": lambda files, path, other: files.set_stamp(path, Stamp(0o777, 5)),
    "lock": lambda files, path, other: files.lock(path.parent),
}

LEADS_OUT = {
    "the parent": "../home/keys",
    "out and in again": "config/../../home/keys",
    "NUL": "config/\0keys",
    "a long name": "config/" + "x" * 256,
}


@pytest.mark.parametrize("name", LEADS_OUT.values(), ids=LEADS_OUT.keys())
def test_a_path_that_may_lead_out_is_refused(files, root, name):
    other = root / "config" / "topics.json"
    with every_row() as row:
        for called, call in CALLS.items():
            path = Path(f"{root}/{name}")
            if name.startswith("config/") and called in {"sync_dir", "usage", "list_dir", "lock"}:
                path = path / "below"
            with row(called), pytest.raises(UnsafePathError):
                call(files, path, other)


def test_an_absolute_path_elsewhere_is_refused(files, root, outside):
    with every_row() as row:
        for called, call in CALLS.items():
            with row(called), pytest.raises(UnsafePathError):
                call(files, outside / "keys", root / "config" / "topics.json")


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_no_call_goes_through_a_link_on_the_way(files, root, outside, depth):
    folder = root.joinpath(*["consumequeue", "T", "0"][: depth - 1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "way").symlink_to(outside)
    with every_row() as row:
        for called, call in CALLS.items():
            with row(called), pytest.raises(FileKindError):
                call(files, folder / "way" / "keys", root / "config" / "topics.json")


def test_no_call_goes_through_a_link_that_leads_back_into_the_store(files, root):
    (root / "way").symlink_to("config")
    with every_row() as row:
        for called, call in CALLS.items():
            with row(called), pytest.raises(FileKindError):
                call(files, root / "way" / "topics.json", root / "config" / "delayOffset.json")


OPENING = ["open", "open for writing", "read_file", "write_file", "link", "stamp", "set_stamp"]


@pytest.mark.parametrize("make", SPECIAL_KINDS)
def test_what_is_no_regular_file_is_never_opened(files, root, outside, make):
    make(root / "config" / "odd.json", outside)
    with every_row() as row:
        for called in OPENING:
            with row(called):
                with pytest.raises(FileKindError) as error:
                    CALLS[called](files, root / "config" / "odd.json", root / "config" / "topics.json")
                assert error.value.file == "config/odd.json"


@pytest.mark.parametrize("make", SPECIAL_KINDS)
def test_a_lock_file_of_another_kind_is_refused(files, root, outside, make):
    make(root / "lock", outside)
    with pytest.raises(FileKindError):
        files.lock(root)


@pytest.mark.parametrize("make", SPECIAL_KINDS)
def test_whoever_holds_no_lock_is_not_asked_of_another_kind_of_file(files, root, outside, make):
    make(root / "lock", outside)
    assert files.lock_holder() is None


def test_a_lock_file_with_other_names_is_replaced_before_it_is_written(files, root, outside, opener):
    os.link(outside / "keys", root / "lock")
    lock = files.lock(root)
    lock.mark()
    assert (root / "lock").read_bytes() == b"seglog" + CANARY[6:]
    with pytest.raises(StoreLockedError):
        StoreRoot(root, opener=opener).lock(root)
    lock.release()
    StoreRoot(root, opener=opener).lock(root).release()
    assert sorted(path.name for path in root.iterdir()) == ["checkpoint", "config", "lock"]


@pytest.mark.parametrize("make", SPECIAL_KINDS[:-1])
def test_a_listing_for_a_writer_refuses_what_no_store_has(files, root, outside, make):
    make(root / "config" / "odd", outside)
    with pytest.raises(FileKindError):
        files.list_dir(root / "config")


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("", "checkpoint"),
        ("config", "consumerOffset.json"),
        ("commitlog", "0" * 20),
        ("consumequeue/T/0", "0" * 20),
        ("index", "20261122120000000"),
    ],
)
def test_a_folder_called_like_a_file_is_refused(tmp_path, opener, folder, name):
    (tmp_path / "other" / folder / name).mkdir(parents=True)
    files = StoreRoot(tmp_path / "other", opener=opener)
    with pytest.raises(FileKindError):
        files.list_dir(tmp_path / "other" / folder)


def test_a_topic_may_be_called_like_a_file(tmp_path, opener):
    (tmp_path / "other" / "consumequeue" / ("0" * 20)).mkdir(parents=True)
    files = StoreRoot(tmp_path / "other", opener=opener)
    assert [entry.is_dir for entry in files.list_dir(tmp_path / "other" / "consumequeue")] == [True]


@pytest.mark.parametrize("make", SPECIAL_KINDS[:-1])
def test_a_reader_counts_it_as_absent_and_remembers_it(root, outside, make, opener):
    make(root / "config" / "odd.json", outside)
    files = ReadingRoot(root, opener=opener)

    assert [entry.name for entry in files.list_dir(root / "config")] == ["topics.json"]
    assert not files.exists(root / "config" / "odd.json")
    assert files.read_file(root / "config" / "odd.json") == b""
    with pytest.raises(FileNotFoundError):
        files.open(root / "config" / "odd.json", writable=False)
    assert [(one.code, one.file) for one in files.findings] == [("file-kind", "config/odd.json")]


def test_a_reader_opens_nothing_for_writing(root, opener):
    with pytest.raises(PermissionError):
        ReadingRoot(root, opener=opener).open(root / "checkpoint", writable=True)


def test_many_odd_things_in_a_folder_are_one_finding(root, opener):
    for number in range(100):
        os.mkfifo(root / "config" / f"{number:03d}")
    files = ReadingRoot(root, opener=opener)
    files.list_dir(root / "config")
    (finding,) = files.findings
    assert (finding.file, finding.found) == ("config/000", "a pipe, and 99 more in this folder")


def test_links_themselves_are_renamed_and_removed(files, root, outside):
    (root / "config" / "odd").symlink_to(outside / "keys")
    files.rename(root / "config" / "odd", root / "config" / "other")
    assert (root / "config" / "other").readlink() == outside / "keys"
    files.rename(root / "checkpoint", root / "config" / "other")
    assert (root / "config" / "other").read_bytes() == b"mark"
    (root / "odd").symlink_to(outside)
    files.remove(root / "odd")
    assert not (root / "odd").is_symlink()


def test_a_tree_is_removed_without_what_links_in_it_lead_to(files, root, outside):
    (root / "seglog" / "tree" / "deep").mkdir(parents=True)
    (root / "seglog" / "tree" / "way").symlink_to(outside)
    (root / "seglog" / "tree" / "deep" / "key").symlink_to(outside / "keys")
    files.remove_tree(root / "seglog" / "tree")
    assert not (root / "seglog" / "tree").exists()


def test_the_store_itself_may_be_reached_through_links(root, tmp_path, opener):
    (tmp_path / "name").symlink_to(root)
    files = StoreRoot(tmp_path / "name", opener=opener)
    assert files.read_file(tmp_path / "name" / "checkpoint") == b"mark"
    files.write_file(tmp_path / "name" / "abort", b"1")
    assert (root / "abort").read_bytes() == b"1"


@pytest.fixture
def elsewhere(root, tmp_path):
    """The commit log on another disk, as with storePathCommitLog."""
    made = tmp_path / "disk2" / "log"
    made.mkdir(parents=True)
    (made / ("0" * 20)).write_bytes(b"record")
    (root / "commitlog").symlink_to(made)
    return made


def test_a_folder_that_is_a_link_is_followed_if_the_caller_names_it(root, elsewhere, opener):
    files = StoreRoot(root, follow=("commitlog",), opener=opener)
    name = root / "commitlog" / ("0" * 20)

    assert [(entry.name, entry.is_dir) for entry in files.list_dir(root)][1] == ("commitlog", True)
    assert files.is_dir(root / "commitlog")
    assert files.exists(root / "commitlog")
    assert [entry.name for entry in files.list_dir(root / "commitlog")] == ["0" * 20]
    assert files.read_file(name) == b"record"
    files.write_file(name, b"other")
    files.create(root / "commitlog" / "new", 4).close()
    files.rename(root / "commitlog" / "new", root / "commitlog" / "newer")
    files.make_dirs(root / "commitlog" / "a" / "b")
    files.sync_dir(root / "commitlog")
    assert files.usage(root / "commitlog").available_bytes > 0
    assert (elsewhere / ("0" * 20)).read_bytes() == b"other"
    assert (elsewhere / "newer").exists()
    assert (elsewhere / "a" / "b").is_dir()


@pytest.mark.parametrize("kind", ["file", "link to nothing", "link to a file"])
def test_what_is_to_be_followed_is_a_folder(root, outside, opener, kind):
    if kind == "file":
        (root / "commitlog").write_bytes(b"")
    else:
        (root / "commitlog").symlink_to(outside / ("nothing" if kind == "link to nothing" else "keys"))
    with pytest.raises(InvalidArgumentError, match=r"follow='commitlog'.* a folder or a link to one at"):
        StoreRoot(root, follow=("commitlog",), opener=opener).list_dir(root)


def test_a_folder_that_is_not_there_yet_may_be_named(root, opener):
    assert StoreRoot(root, follow=("commitlog",), opener=opener).list_dir(root / "commitlog") == []


def test_it_is_not_followed_otherwise_and_the_error_says_how(root, elsewhere, opener):
    with pytest.raises(FileKindError) as error:
        StoreRoot(root, opener=opener).list_dir(root / "commitlog")
    assert "--follow commitlog" in error.value.help
    with pytest.raises(FileKindError):
        StoreRoot(root, follow=("index",), opener=opener).read_file(root / "commitlog" / ("0" * 20))


def test_links_in_a_folder_that_is_followed_are_refused(root, elsewhere, outside, opener):
    (elsewhere / "way").symlink_to(outside)
    files = StoreRoot(root, follow=("commitlog",), opener=opener)
    with pytest.raises(FileKindError):
        files.read_file(root / "commitlog" / "way" / "keys")
    with pytest.raises(UnsafePathError):
        files.read_file(Path(f"{root}/commitlog/../../home/keys"))


def test_a_file_with_several_names_in_a_folder_that_is_followed_is_replaced(root, elsewhere, opener):
    os.link(elsewhere / ("0" * 20), elsewhere.parent / "second")
    files = StoreRoot(root, follow=("commitlog",), opener=opener)
    handle = files.open(root / "commitlog" / ("0" * 20), writable=True)
    handle.write_at(b"R", 0)
    handle.close()
    assert (elsewhere.parent / "second").read_bytes() == b"record"
    assert [entry.name for entry in elsewhere.iterdir()] == ["0" * 20]


@pytest.mark.parametrize("name", ["config/topics.json", "..", "/etc", "a\0b", ""])
def test_only_folders_directly_in_the_store_are_followed(root, name):
    with pytest.raises((InvalidArgumentError, UnsafePathError)):
        StoreRoot(root, follow=(name,))


def test_a_file_with_several_names_is_replaced_before_it_is_written(files, root, outside):
    os.link(outside / "keys", root / "config" / "keys")
    handle = files.open(root / "config" / "keys", writable=True)
    handle.write_at(b"evil", 0)
    handle.close()
    assert (outside / "keys").read_bytes() == CANARY
    assert (root / "config" / "keys").read_bytes() == b"evil" + CANARY[4:]
    assert sorted(path.name for path in (root / "config").iterdir()) == ["keys", "topics.json"]


def test_a_small_file_with_several_names_is_replaced(files, root, outside):
    os.link(outside / "keys", root / "abort")
    files.write_file(root / "abort", b"1")
    assert (root / "abort").read_bytes() == b"1"


def test_rights_are_of_the_file_and_no_more_than_rights(files, root):
    files.set_stamp(root / "checkpoint", Stamp(0o104_0640 | stat.S_ISUID, 7_000))
    assert files.stamp(root / "checkpoint") == Stamp(0o640, 7_000)


def test_a_file_whose_rights_let_nobody_read_gets_others(files, root):
    (root / "checkpoint").chmod(0)
    files.set_stamp(root / "checkpoint", Stamp(0o600, 1))
    assert files.stamp(root / "checkpoint") == Stamp(0o600, 1)


def test_a_store_that_is_not_there_has_nothing_until_its_folder_is_made(tmp_path, opener):
    path = tmp_path / "a" / "b"
    files = StoreRoot(path, opener=opener)
    assert files.list_dir(path) == []
    assert not files.exists(path / "lock")
    assert not files.is_dir(path)
    files.make_dirs(path / "config")
    files.write_file(path / "config" / "x", b"1")
    assert (path / "config" / "x").read_bytes() == b"1"


def test_errors_name_the_whole_path(files, root):
    with pytest.raises(FileNotFoundError) as error:
        files.open(root / "config" / "none", writable=False)
    assert error.value.filename == str(root / "config" / "none")
    with pytest.raises(FileExistsError) as existing:
        files.create(root / "config" / "topics.json", 1)
    assert existing.value.filename == str(root / "config" / "topics.json")


def test_one_process_locks_a_store_once(files, root, opener):
    lock = files.lock(root)
    with pytest.raises(StoreLockedError):
        StoreRoot(root, opener=opener).lock(root)
    assert StoreRoot(root, opener=opener).lock_holder() is not None
    lock.release()
    assert files.lock_holder() is None


def test_calls_take_no_descriptor_beyond_the_store_s(files, root):
    gc.collect()  # what earlier tests let go of
    files.exists(root / "checkpoint")
    before = open_descriptors()
    for _ in range(50):
        files.read_file(root / "config" / "topics.json")
        files.write_file(root / "config" / "delayOffset.json", b"{}")
        files.list_dir(root / "config")
        files.exists(root / "config" / "none" / "none")
        with pytest.raises(FileKindError):
            files.open(root / "config", writable=False)
    assert open_descriptors() == before


def test_a_root_that_is_let_go_gives_its_descriptors_back(root, elsewhere):
    gc.collect()
    before = open_descriptors()
    files = StoreRoot(root, follow=("commitlog",))
    files.list_dir(root / "commitlog")
    assert open_descriptors() == before + 2
    del files
    assert open_descriptors() == before


def test_folders_exchanged_for_links_meanwhile_never_lead_outside(files, root, outside):
    """A process that swaps a folder for a link while files are opened gets none outside opened."""
    (outside / "topics.json").write_bytes(CANARY)
    real, hidden, link = root / "config", root / "hidden", root / "link"
    before = snapshot(outside)
    link.symlink_to(outside)
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            real.rename(hidden)
            link.rename(real)
            time.sleep(0)  # others may run with the link in place,
            real.rename(link)
            hidden.rename(real)
            time.sleep(0.000_1)  # and with the folder

    thread = threading.Thread(target=swap)
    thread.start()
    outcomes = {"read": 0, "refused": 0}
    try:
        end_s = time.monotonic() + 30
        while (min(outcomes.values()) < 100 or sum(outcomes.values()) < 2000) and time.monotonic() < end_s:
            try:
                data = files.read_file(real / "topics.json")
                files.write_file(real / "topics.json", b"[%d]" % outcomes["read"])
                files.set_stamp(real / "topics.json", Stamp(0o777, 9))
            except (FileKindError, FileNotFoundError, NotADirectoryError):
                outcomes["refused"] += 1
            else:
                assert data != CANARY
                outcomes["read"] += 1
    finally:
        stop.set()
        thread.join()
        after = snapshot(outside)
        (outside / "topics.json").unlink()
    assert after == before
    assert all(outcomes.values()), outcomes


def test_the_walk_serves_where_the_system_refuses_openat2(monkeypatch, root):
    for code in (errno.ENOSYS, errno.EPERM):

        def refuse(folder, path, flags, code=code):
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(beneath, "native_open_beneath", refuse)
        files = StoreRoot(root)
        assert files.read_file(root / "config" / "topics.json") == b"{}"
    monkeypatch.setattr(beneath, "native_open_beneath", None)
    assert StoreRoot(root).read_file(root / "config" / "topics.json") == b"{}"
