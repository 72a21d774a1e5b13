"""Queue files that are wrong never change a record of the log, in an opening or a repair."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from seglog.doctor.repair.repair import repair_store
from seglog.storage.files.files import RealFiles
from seglog.storage.store import MessageStore
from tests.support.damage.queue_damage import damage_queues, exchange, queue_files
from tests.support.material import golden
from tests.support.material.stores import SMALL_INDEX, AllLengths, copy_store, new_clock, served
from tests.support.scale import chance, scaled

EACH = 40
FILE_BYTES = 400


def make(name, folder):
    """Returns a store without record CRC of which several queues grow side by side."""
    if name != "own":
        return golden.extract(name, folder)
    sizes: AllLengths = {"segment_size_bytes": 65536, "queue_file_size_bytes": FILE_BYTES, **SMALL_INDEX}
    with MessageStore.open(folder / name, clock=new_clock(), record_crc=False, **sizes) as store:
        for number in range(190):
            store.put("T", b"%d" % (number // 2), queue_id=number % 2, keys=f"k{number}")
        for number in range(9):
            store.put("U", b"%d" % number, queue_id=number % 3)
    return folder / name


class Intact:
    """A store, the bytes of its log, and what it serves."""

    def __init__(self, name, folder):
        self.root = make(name, folder)
        with MessageStore.open(self.root, read_only=True) as store:
            self.served = served(store)
            self.end = store.max_phy_offset
        self.log = self.log_of(self.root)

    def log_of(self, root):
        """Returns the log up to the end that it had: a store may be written on behind it."""
        return b"".join(path.read_bytes() for path in sorted((root / "commitlog").iterdir()))[: self.end]

    def check(self, root):
        """Asserts that log and messages are as they were."""
        assert self.log_of(root) == self.log
        with MessageStore.open(root, read_only=True) as store:
            found = served(store)
        assert found == self.served

    def check_reader(self, root):
        """Asserts that a reader serves nothing otherwise."""
        with MessageStore.open(root, read_only=True) as store:
            assert served(store) == self.served


@pytest.fixture(scope="module", params=["own", "idxroll", "roll"])
def intact(request, module_folders):
    return Intact(request.param, module_folders.mktemp("intact"))


def repaired(root):
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)


def opened(root):
    MessageStore.open(root, clock=new_clock(), create=False).close()


@pytest.mark.parametrize("put_right", [opened, repaired])
def test_exchanged_files_of_two_queues_change_no_record(intact, put_right, memory_path: Path):
    files = queue_files(intact.root)
    pairs = [
        (one, other)
        for at, one in enumerate(files)
        for other in files[at + 1 :]
        if one.name == other.name and one.parent.parent == other.parent.parent
    ]
    assert pairs
    for number, pair in enumerate(pairs):
        copy = copy_store(intact.root, memory_path / str(number))
        exchange(*(copy / path.relative_to(intact.root) for path in pair))
        intact.check_reader(copy)
        put_right(copy)
        intact.check(copy)
        shutil.rmtree(copy)


@pytest.mark.parametrize("put_right", [opened, repaired])
def test_damage_to_queue_files_alone_changes_no_record(intact, put_right, memory_path: Path):
    for seed in range(scaled(EACH, 2000)):
        copy = copy_store(intact.root, memory_path / "store")
        told = damage_queues(copy, chance("queues", seed))
        try:
            intact.check_reader(copy)
            put_right(copy)
            intact.check(copy)
        except AssertionError as error:
            error.add_note(f"seed {seed}: {told}")
            raise
        shutil.rmtree(copy)
