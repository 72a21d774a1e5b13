"""Index and checkpoint show damage that no checksum covers, and say nothing of what is whole."""

from __future__ import annotations

import random
import shutil

import pytest

from seglog.storage.files.files import RealFiles
from seglog.storage.format.index.index import INDEX_ENTRY, INDEX_HEADER, INDEX_SLOT
from seglog.storage.index_check import index_check
from seglog.storage.index_check.index_check import check_index
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from tests.support.material import golden
from tests.support.material.stores import SEGMENT_BYTES, SMALL, SMALL_INDEX, fill, new_clock
from tests.support.rows import every_row


def check(root):
    found = survey(root, RealFiles())
    of_checkpoint = [finding for finding in found.findings if finding.code.startswith("checkpoint")]
    return of_checkpoint + check_index(found, RealFiles())


def codes(root):
    return {finding.code for finding in check(root)}


def open_store(root, **options):
    return MessageStore.open(root, clock=new_clock(), **SMALL, **SMALL_INDEX, **options)


def test_whole_stores_of_rocketmq_agree():
    with every_row() as row:
        for name in golden.golden_names(damaged=False):
            with row(name):
                assert check(golden.shared(name)) == []


DAMAGED = (
    ("d-propflip", {"record-keys"}),
    ("d-indexgarbage", {"index-damaged"}),
    ("d-indexgarbage-halt", {"index-damaged"}),
    ("d-noindex", {"index-missing"}),
    ("d-nocheckpoint", {"checkpoint-missing"}),
    ("d-stalecheckpoint", {"checkpoint-behind"}),
    ("d-trunclast", {"index-entry-stray", "checkpoint-ahead"}),
    ("d-zerotail-halt", set()),
    ("d-trimfront", set()),
    ("d-bodyflip-first", set()),
)


def test_damage_of_real_stores_is_named():
    with every_row() as row:
        for name, wanted in DAMAGED:
            with row(name, wanted):
                assert codes(golden.shared(name)) == wanted


@pytest.mark.parametrize("record_crc", [True, False])
def test_own_stores_agree_after_a_close_and_while_the_index_trails(tmp_path, record_crc):
    root = tmp_path / "store"
    with open_store(root, record_crc=record_crc) as store:
        fill(store, 50)
        assert store.query("Topic0", "k0")  # brings the index to the log
        fill(store, 50)
        store.flush()
        shutil.copytree(root, tmp_path / "killed")
    assert check(root) == []
    assert check(tmp_path / "killed") == []
    with open_store(tmp_path / "killed"):
        pass
    assert check(tmp_path / "killed") == []


def test_a_key_that_changed_is_named_with_its_record(tmp_path):
    root = tmp_path / "store"
    with open_store(root, record_crc=False) as store:
        put = [store.put("T", b"body", keys=f"key{number}") for number in range(40)][33]
    path = root / "commitlog" / f"{put.phy_offset // SEGMENT_BYTES * SEGMENT_BYTES:020d}"
    path.write_bytes(path.read_bytes().replace(b"key33", b"key73"))
    (finding,) = check(root)
    assert (finding.code, finding.file) == ("record-keys", f"commitlog/{path.name}")
    assert finding.position_bytes == put.phy_offset % SEGMENT_BYTES


def test_a_log_whose_end_nothing_else_remembers_is_older_than_its_checkpoint(tmp_path):
    root = tmp_path / "store"
    clock = new_clock()
    with MessageStore.open(root, clock=clock, **SMALL, **SMALL_INDEX) as store:
        for _number in range(40):
            store.put("T", bytes(200))
            clock.advance(10)
    shutil.rmtree(root / "consumequeue")
    last = max((root / "commitlog").iterdir())
    last.write_bytes(bytes(SEGMENT_BYTES))
    assert "checkpoint-ahead" in codes(root)


def test_what_recovery_did_about_lost_messages_leaves_nothing_to_say(tmp_path):
    root = tmp_path / "store"
    with open_store(root) as store:
        fill(store, 60)
    last = max((root / "commitlog").iterdir())
    last.write_bytes(last.read_bytes()[: SEGMENT_BYTES // 4])
    assert codes(root) >= {"index-entry-stray"}
    for _life in range(2):
        with open_store(root) as store:
            fill(store, 1)
    assert codes(root) <= {"checkpoint-ahead"}


def poke(path, at, data):
    content = bytearray(path.read_bytes())
    content[at : at + len(data)] = data
    path.write_bytes(content)


def entry_of(root, number):
    """Returns the only index file and where one of its entries is."""
    (path,) = (root / "index").iterdir()
    return path, INDEX_HEADER.size_bytes + 50 * INDEX_SLOT.size_bytes + number * INDEX_ENTRY.size_bytes


@pytest.fixture
def keyed(tmp_path):
    root = tmp_path / "store"
    with open_store(root) as store:
        for number in range(40):
            store.put("T", b"body", keys=f"key{number}")
    return root


def test_times_are_compared_beside_a_key_that_differs(keyed):
    path, at = entry_of(keyed, 9)
    poke(path, at + INDEX_ENTRY.offsets["time_diff_s"], (77).to_bytes(4, "big"))
    path, at = entry_of(keyed, 20)
    poke(path, at + INDEX_ENTRY.offsets["key_hash"], (5).to_bytes(4, "big"))
    told = [(finding.code, finding.found) for finding in check(keyed)]
    assert [found for code, found in told if code == "index-damaged"][-1].startswith("another for 1 record")
    assert "record-keys" in [code for code, _found in told]


@pytest.mark.parametrize("modulus", [0, 1 << 32], ids=["signed", "unsigned"])
def test_a_hash_that_no_key_has_damages_its_file_although_its_chain_is_whole(modulus, keyed):
    path, at = entry_of(keyed, 9)
    hashed = int.from_bytes(path.read_bytes()[at : at + 4], "big")
    alike = next(one for one in range(-1, -100, -1) if (one + modulus - hashed) % 50 == 0)
    poke(path, at, alike.to_bytes(4, "big", signed=True))
    (finding,) = [one for one in check(keyed) if one.code == "index-damaged"]
    assert finding.file == f"index/{path.name}"


def test_the_index_says_nothing_of_its_own_where_the_whole_log_is_gone(keyed):
    shutil.rmtree(keyed / "commitlog")
    assert "index-entry-stray" not in codes(keyed)
    assert "log-empty" in {finding.code for finding in survey(keyed, RealFiles()).findings}


@pytest.mark.parametrize("records", [1, 7, 1000])
def test_the_windows_that_a_log_is_read_in_make_no_difference(records, keyed, monkeypatch):
    chance = random.Random("windows")
    for number in chance.sample(range(2, 38), 6):
        path, at = entry_of(keyed, number)
        poke(path, at + chance.randrange(INDEX_ENTRY.size_bytes), chance.randbytes(1))
    whole = check(keyed)
    monkeypatch.setattr(index_check, "_WINDOW_RECORDS", records)
    assert check(keyed) == whole
    assert whole
