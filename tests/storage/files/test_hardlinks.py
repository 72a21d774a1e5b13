"""A file that is to be written gets bytes of its own first: no backup or branch changes behind its owner."""

from __future__ import annotations

import os

import pytest

from seglog.storage.files.copies import copy_file, link_or_copy
from seglog.storage.files.files import RealFiles
from seglog.storage.files.store_root import StoreRoot
from seglog.storage.store import MessageStore
from tests.support.material import golden
from tests.support.material.stores import SMALL, SMALL_INDEX, copy_store, fill, served


@pytest.fixture
def two(tmp_path):
    """One file with two names."""
    one, other = tmp_path / "commitlog" / f"{0:020d}", tmp_path / "other"
    one.parent.mkdir()
    one.write_bytes(b"as it was")
    os.utime(one, ns=(1_000, 2_000))
    os.link(one, other)
    return one, other


def test_writing_breaks_the_link(two):
    one, other = two
    handle = RealFiles().open(one, writable=True)
    handle.write_at(b"now", 0)
    handle.close()
    assert (one.read_bytes(), other.read_bytes()) == (b"nowit was", b"as it was")
    assert one.stat().st_nlink == other.stat().st_nlink == 1
    assert [entry.name for entry in one.parent.iterdir()] == [one.name]


def test_a_map_for_writing_is_of_a_file_of_its_own(two):
    one, other = two
    handle = RealFiles().open(one, writable=True)
    view = handle.map()
    view[:3] = b"now"
    handle.close()
    assert other.read_bytes() == b"as it was"
    assert one.read_bytes() == b"nowit was"


def test_reading_breaks_nothing(two):
    one, _other = two
    handle = RealFiles().open(one, writable=False)
    assert bytes(handle.map()) == b"as it was"
    handle.close()
    assert one.stat().st_nlink == 2


def test_replacing_a_small_file_leaves_the_other_name(two):
    one, other = two
    RealFiles().write_file(one, b"new")
    assert (one.read_bytes(), other.read_bytes()) == (b"new", b"as it was")


def test_a_broken_link_keeps_holes_and_times(tmp_path):
    path = tmp_path / "log"
    with path.open("wb") as stream:
        stream.truncate(64 << 20)
        stream.seek(32 << 20)
        stream.write(b"in the middle")
    os.utime(path, ns=(1_000, 2_000))
    os.link(path, tmp_path / "other")
    RealFiles().open(path, writable=True).close()
    assert path.read_bytes() == (tmp_path / "other").read_bytes()
    assert path.stat().st_mtime_ns == 2_000
    assert path.stat().st_blocks * 512 < 1 << 20


def test_what_a_killed_copy_left_does_not_matter(two):
    one, other = two
    (one.parent.parent / f"commitlog-{one.name}.own").write_bytes(b"half")
    RealFiles().open(one, writable=True).close()
    assert one.read_bytes() == other.read_bytes()
    assert not (one.parent.parent / f"commitlog-{one.name}.own").exists()


def test_a_copy_ends_where_it_is_told(two, tmp_path):
    one, _other = two
    files = StoreRoot(tmp_path)
    copy_file(files, one, files, tmp_path / "copy", 5)
    assert (tmp_path / "copy").read_bytes() == b"as it" + bytes(4)
    assert link_or_copy(files, one, files, tmp_path / "linked")
    assert one.stat().st_nlink == 3


@pytest.mark.parametrize("is_crashed", [False, True])
def test_a_store_of_links_is_opened_read_and_appended_to_without_changing_the_other(tmp_path, is_crashed):
    with MessageStore.open(tmp_path / "s", **SMALL, **SMALL_INDEX) as store:
        fill(store, 200)
        before = served(store)
    root = tmp_path / "s"
    twin = tmp_path / "twin"
    for file in [root / name for name, (size, _sha) in golden.tree_digest(root).items() if size >= 0]:
        target = twin / file.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.link(file, target)
    if is_crashed:
        (twin / "abort").touch()
    untouched = golden.tree_digest(root)
    linked = {name for name in untouched if not name.endswith("/")}
    with MessageStore.open(twin) as store:
        assert served(store) == before
        fill(store, 50)
        for queue in store.queues():
            store.queue(queue.topic, queue.queue_id).bodies()
    assert golden.tree_digest(root) == untouched
    shared = {name for name in linked if (twin / name).exists() and (root / name).samefile(twin / name)}
    # Full segments are read where they are: only what was appended to is copied.
    full = {name for name in linked if name.startswith("commitlog/")}
    assert len(full - shared) <= 2
    assert copy_store(twin, tmp_path / "third").exists()
