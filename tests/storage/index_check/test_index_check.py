"""Index and checkpoint show damage that no checksum covers, and say nothing of what is whole."""

from __future__ import annotations

import shutil

import pytest

from seglog.storage.files.files import RealFiles
from seglog.storage.index_check.index_check import check_index
from seglog.storage.store import MessageStore
from seglog.storage.survey.survey import survey
from tests.support import golden
from tests.support.stores import SEGMENT_BYTES, SMALL, SMALL_INDEX, fill, new_clock


def check(root):
    found = survey(root, RealFiles())
    of_checkpoint = [finding for finding in found.findings if finding.code.startswith("checkpoint")]
    return of_checkpoint + check_index(found, RealFiles())


def codes(root):
    return {finding.code for finding in check(root)}


def open_store(root, **options):
    return MessageStore.open(root, clock=new_clock(), **SMALL, **SMALL_INDEX, **options)


@pytest.mark.parametrize("name", golden.golden_names(damaged=False))
def test_whole_stores_of_rocketmq_agree(name, tmp_path):
    assert check(golden.extract(name, tmp_path)) == []


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
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
    ],
)
def test_damage_of_real_stores_is_named(name, wanted, tmp_path):
    assert codes(golden.extract(name, tmp_path)) == wanted


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
