"""What root creates in a store has the owner and the rights of its folder: the broker's user opens it."""

from __future__ import annotations

import os
import stat

import pytest

from seglog.doctor.repair.repair import repair_store
from seglog.doctor.undo.undo import undo_repair
from seglog.storage.files.files import RealFiles
from seglog.storage.files.store_root import StoreRoot
from seglog.storage.store import MessageStore
from tests.support.material import golden
from tests.support.material.stores import SMALL, new_clock

BROKER = (12345, 23456)
"""A user and a group that do not exist."""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


def give(root, rights):
    for path in (root, *root.rglob("*")):
        os.chown(path, *BROKER, follow_symlinks=False)
        path.chmod(rights if path.is_dir() else rights & 0o666)


def others(root):
    """Returns what is not the broker's, or that it cannot open."""
    found = {}
    for path in root.rglob("*"):
        status = path.lstat()
        wanted = 0o700 if path.is_dir() else 0o600
        if (status.st_uid, status.st_gid) != BROKER or status.st_mode & wanted != wanted:
            found[path.relative_to(root).as_posix()] = (status.st_uid, stat.filemode(status.st_mode))
    return found


@pytest.mark.parametrize("name", ["d-nocq", "d-zeropage-first", "d-indexgarbage", "roll-halt"])
def test_a_repair_and_its_undo_leave_everything_to_the_brokers_user(name, tmp_path):
    root = golden.extract(name, tmp_path)
    give(root, 0o750)
    repair_store(StoreRoot(root), root, new_clock(), lambda _plan: True)
    assert others(root) == {}
    undo_repair(StoreRoot(root), root)
    assert others(root) == {}


@pytest.mark.parametrize("rights", [0o700, 0o750, 0o775])
def test_what_a_writer_creates_has_the_rights_of_its_folder(rights, tmp_path):
    root = tmp_path / "s"
    with MessageStore.open(root, clock=new_clock(), **SMALL) as store:
        store.put("T", b"x", keys="k")
    (root / "lock").unlink()
    give(root, rights)
    with MessageStore.open(root, clock=new_clock()) as store:
        for number in range(200):
            store.put("New", b"%d" % number, queue_id=number % 3, keys=f"k{number}")
    assert others(root) == {}
    modes = {path.is_dir(): stat.S_IMODE(path.stat().st_mode) for path in root.rglob("*")}
    assert modes == {True: rights, False: rights & 0o666}
    assert len({stat.S_IMODE(path.stat().st_mode) for path in root.rglob("*")}) == 2


def test_a_store_of_root_stays_roots(tmp_path):
    with MessageStore.open(tmp_path / "s", clock=new_clock(), **SMALL) as store:
        store.put("T", b"x")
    assert {path.stat().st_uid for path in (tmp_path / "s").rglob("*")} == {0}


def test_a_file_with_another_name_keeps_its_owner_and_rights_when_it_gets_bytes_of_its_own(tmp_path):
    root = golden.extract("d-zeropage-first", tmp_path)
    give(root, 0o750)
    (tmp_path / "copy").mkdir()
    for path in (root / "commitlog").iterdir():
        os.link(path, tmp_path / "copy" / path.name)
    repair_store(StoreRoot(root), root, new_clock(), lambda _plan: True)
    assert others(root) == {}
    assert RealFiles().list_dir(tmp_path / "copy")
