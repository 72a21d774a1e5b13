"""What the index alone denies is looked for in the log, where the index is not whole."""

from __future__ import annotations

import pytest

from seglog.doctor.message import LogView, Scan, find_families
from seglog.errors import NotFoundError
from seglog.storage.directory.index_files import entry_at, list_index_files
from seglog.storage.files.files import RealFiles
from seglog.storage.format.index.index import INDEX_ENTRY, INDEX_HEADER, INDEX_SLOT, IndexGeometry
from seglog.storage.store import MessageStore
from tests.support.material.stores import SMALL, copy_store, new_clock

TINY = IndexGeometry(slot_count=5, entry_count=12)
COUNT = 60
NO_KEY_AT = range(24, 30)
"""Messages without keys, between two files of the index or within one."""


@pytest.fixture(scope="module")
def original(module_folders):
    root = module_folders.mktemp("original") / "s"
    with MessageStore.open(root, clock=new_clock(), index_geometry=TINY, **SMALL) as store:
        for number in range(COUNT):
            keys = None if number in NO_KEY_AT else f"k{number}"
            store.put("T", b"%d" % number, queue_id=0, keys=keys)
    return root


@pytest.fixture
def root(original, tmp_path):
    return copy_store(original, tmp_path / "s")


def index_of(root):
    return list_index_files(RealFiles(), root)[0]


def write(path, position, data):
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def gone(file):
    file.path.unlink()


def unreadable(file):
    file.path.write_bytes(b"\x5a" * file.geometry.file_size_bytes)


def cut(file):
    file.path.write_bytes(file.path.read_bytes()[:100])


def slots_lost(file):
    write(file.path, INDEX_HEADER.size_bytes, bytes(INDEX_SLOT.size_bytes * file.geometry.slot_count))


def chains_looped(file):
    """Each entry names itself as the one before it."""
    for number in range(1, file.header.index_count):
        at = entry_at(file, number) + INDEX_ENTRY.offsets["previous_entry"]
        write(file.path, at, number.to_bytes(4, "big"))


def slots_forward(file):
    number = file.geometry.entry_count + 7
    slots = number.to_bytes(4, "big") * file.geometry.slot_count
    write(file.path, INDEX_HEADER.size_bytes, slots)


def slots_negative(file):
    write(file.path, INDEX_HEADER.size_bytes, b"\xff" * 4 * file.geometry.slot_count)


DAMAGES = [gone, unreadable, cut, slots_lost, chains_looped, slots_forward, slots_negative]
PLACES = {"first": 0, "middle": 2, "newest": -1}


def found_by_query(root):
    with MessageStore.open(root, read_only=True) as store:
        return {
            number
            for number in range(COUNT)
            if number not in NO_KEY_AT
            for message in store.query("T", f"k{number}")
            if message.body == b"%d" % number
        }


def found_by_explain(root):
    found = set()
    with LogView(RealFiles(), root) as view:
        for number in set(range(COUNT)) - set(NO_KEY_AT):
            (family,) = find_families(view, f"k{number}", topic="T").families
            found.add(int(bytes(family[0].body)))
    return found


ALL = set(range(COUNT)) - set(NO_KEY_AT)


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_no_message_is_denied_by_a_damaged_index(root, damage, place):
    damage(index_of(root)[place])
    assert found_by_query(root) == ALL
    assert found_by_explain(root) == ALL


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_opening_finds_every_key_too(original, root, damage):
    damage(index_of(root)[2])
    with MessageStore.open(root, clock=new_clock(), index_geometry=TINY) as store:
        for number in ALL:
            assert [message.body for message in store.query("T", f"k{number}")] == [b"%d" % number]
    if damage is gone:  # the others are found by a check, and put right by a repair
        ends = [file.header.end_phy_offset for file in index_of(root)]
        assert ends == [file.header.end_phy_offset for file in index_of(original)]


def test_a_file_that_is_damaged_while_the_store_is_open_denies_nothing(root):
    with MessageStore.open(root, clock=new_clock()) as store:
        slots_lost(index_of(root)[1])
        for number in ALL:
            assert [message.body for message in store.query("T", f"k{number}")] == [b"%d" % number]
        assert store.query("T", "nowhere") == []


def test_what_is_nowhere_is_denied(root):
    chains_looped(index_of(root)[2])
    with MessageStore.open(root, read_only=True) as store:
        assert store.query("T", "nowhere") == []
    with LogView(RealFiles(), root) as view:
        for scan in (Scan.NEVER, Scan.WHERE_NEEDED):
            with pytest.raises(NotFoundError):
                find_families(view, "nowhere", scan=scan)
