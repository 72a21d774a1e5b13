"""The simulated disk keeps what was synced, and of the rest anything, but nothing that never was."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from seglog.errors import StoreLockedError
from tests.support.crash.crash_disk import PAGE_BYTES, SECTOR_BYTES
from tests.support.crash.crash_files import CrashFiles, KilledError

FOLDER = Path("/folder")
PATH = FOLDER / "file"
OLD, NEW = b"o", b"n"
IMAGES = 300


def files_with(content=b"", *, seed=1):
    """Returns files with one file, all of it on the disk."""
    files = CrashFiles(random.Random(seed))
    files.make_dirs(FOLDER)
    files.write_file(PATH, content)
    files.sync_dir(FOLDER)
    return files


def images(files):
    return [CrashFiles(disk=files.disk.image(files.chance)) for _ in range(IMAGES)]


def contents(files, path=PATH):
    """Returns what a power cut may make of a file; None where it is gone."""
    return {image.read_file(path) if image.exists(path) else None for image in images(files)}


def test_what_was_synced_stays():
    files = files_with(OLD * 10)
    assert contents(files) == {OLD * 10}


def test_a_write_that_was_not_synced_may_reach_the_disk_or_not():
    files = files_with(OLD * 10)
    files.open(PATH, writable=True).write_at(NEW * 10, 0)
    assert files.read_file(PATH) == NEW * 10
    assert contents(files) == {OLD * 10, NEW * 10}


def test_pages_reach_the_disk_each_on_its_own_and_may_be_torn_at_sectors():
    files = files_with(OLD * 3 * PAGE_BYTES)
    view = files.open(PATH, writable=True).map()
    view[:] = NEW * len(view)
    found = contents(files)
    starts = {tuple(image[at : at + 1] for at in range(0, 3 * PAGE_BYTES, PAGE_BYTES)) for image in found}
    assert starts == set(itertools.product((OLD, NEW), repeat=3))
    for image in found:
        sectors = {image[at : at + SECTOR_BYTES] for at in range(0, len(image), SECTOR_BYTES)}
        assert sectors <= {OLD * SECTOR_BYTES, NEW * SECTOR_BYTES}
    assert any(len(set(image[:PAGE_BYTES])) == 2 for image in found)


def test_what_is_written_through_a_map_is_synced_with_the_file():
    files = files_with(OLD * PAGE_BYTES)
    handle = files.open(PATH, writable=True)
    handle.map()[:4] = b"seen"
    handle.sync()
    assert contents(files) == {b"seen" + OLD * (PAGE_BYTES - 4)}


def test_a_file_that_grew_may_be_found_short_or_without_its_bytes():
    files = files_with()
    handle = files.open(PATH, writable=True)
    handle.set_size(PAGE_BYTES)
    handle.write_at(NEW, 0)
    assert contents(files) >= {b"", bytes(PAGE_BYTES), NEW + bytes(PAGE_BYTES - 1)}
    handle.sync()
    assert contents(files) == {NEW + bytes(PAGE_BYTES - 1)}


def test_a_file_replaced_in_place_may_be_found_empty():
    files = files_with(OLD * 10)
    files.write_file(PATH, NEW * 10, sync=False)
    assert contents(files) >= {b"", OLD * 10, NEW * 10}


def test_names_are_lost_until_their_folder_is_synced():
    files = files_with()
    files.write_file(FOLDER / "other", NEW)
    assert contents(files, FOLDER / "other") == {None, NEW}
    files.sync_dir(FOLDER)
    assert contents(files, FOLDER / "other") == {NEW}


def test_a_rename_is_whole_or_not_at_all():
    files = files_with(OLD)
    files.rename(PATH, FOLDER / "new name")
    states = {
        tuple(entry.name for entry in image.list_dir(FOLDER)) for image in images(files)
    }  # fmt: skip
    assert states == {("file",), ("new name",)}


def test_of_changed_names_any_subset_may_reach_the_disk():
    files = files_with(OLD)
    files.rename(PATH, FOLDER / "file.bak")
    files.write_file(FOLDER / "x", NEW)
    files.rename(FOLDER / "x", PATH)
    found = {
        tuple((entry.name, image.read_file(FOLDER / entry.name)) for entry in image.list_dir(FOLDER))
        for image in images(files)
    }
    assert (("file", OLD),) in found
    assert (("file.bak", OLD),) in found
    assert (("file", NEW),) in found
    assert (("file", NEW), ("file.bak", OLD)) in found
    assert () not in found


def test_a_removed_file_may_come_back():
    files = files_with(OLD)
    files.remove(PATH)
    assert contents(files) == {None, OLD}
    files.sync_dir(FOLDER)
    assert contents(files) == {None}


def test_a_process_dies_before_its_last_call_and_does_nothing_more():
    files = files_with(OLD)
    files.calls_left = 1
    files.remove(PATH)
    with pytest.raises(KilledError):
        files.sync_dir(FOLDER)
    for call in (lambda: files.list_dir(FOLDER), lambda: files.create(PATH, 1), lambda: files.exists(PATH)):
        with pytest.raises(KilledError):
            call()
    assert files.after_kill().list_dir(FOLDER) == []


def test_a_lock_ends_with_its_process():
    files = files_with()
    files.lock(FOLDER)
    with pytest.raises(StoreLockedError):
        files.lock(FOLDER)
    files.after_kill().lock(FOLDER).release()


def test_the_kernel_writes_back_what_nobody_synced():
    files = files_with(OLD * 2 * PAGE_BYTES)
    handle = files.open(PATH, writable=True)
    handle.write_at(NEW * 2 * PAGE_BYTES, 0)
    for _ in range(200):
        files.disk.write_back(files.chance)
    assert contents(files) == {NEW * 2 * PAGE_BYTES}
