"""Tombstones have a tag that the index does not know; whether it has tags others must tell."""

from __future__ import annotations

import os
import shutil

import pytest

from seglog.doctor.check.check import check_store
from seglog.doctor.repair.repair import repair_store
from seglog.storage.files.files import RealFiles
from seglog.storage.format.names import SCHEDULE_TOPIC
from seglog.storage.store import MessageStore
from tests.support.material.stores import SMALL, SMALL_INDEX, copy_store, fill, new_clock, read_all


def test_an_index_of_a_store_that_lost_a_whole_file_still_has_tags(tmp_path):
    root = tmp_path / "store"
    with MessageStore.open(root, clock=new_clock(), **SMALL, **SMALL_INDEX) as store:
        fill(store, 100)
    (root / "commitlog" / f"{4096:020d}").unlink()
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert check_store(root, clock=new_clock()).is_clean


def test_a_store_whose_newest_messages_were_lost_goes_on_to_index_tags(tmp_path):
    root = tmp_path / "store"
    with MessageStore.open(root, clock=new_clock(), **SMALL, **SMALL_INDEX) as store:
        puts = [store.put("T", b"%200d" % number, tags="TagA") for number in range(60)]
    log = max((root / "commitlog").iterdir())
    content = bytearray(log.read_bytes())
    for put in puts[-3:-1]:
        start = put.phy_offset % len(content)
        content[start : start + put.size_bytes] = bytes(put.size_bytes)
    log.write_bytes(content)
    with MessageStore.open(root, clock=new_clock(), **SMALL_INDEX) as store:
        store.put("T", b"new", tags="TagA")
    assert check_store(root, clock=new_clock()).is_clean


@pytest.fixture
def without_tail(tmp_path):
    """A store that lost the end of the delay topic, with the queue files of before: they have times there."""
    root = tmp_path / "store"
    delayed = {"DELAY": "3", "REAL_TOPIC": "Orders", "REAL_QID": "0"}
    with MessageStore.open(root, clock=new_clock(), record_crc=False, **SMALL) as store:
        for number in range(40):
            store.put(SCHEDULE_TOPIC, b"%d" % number, queue_id=2, properties=delayed)
    whole = copy_store(root, tmp_path / "whole")
    os.truncate(max((root / "commitlog").iterdir()), 0)
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    shutil.rmtree(root / "consumequeue")
    shutil.copytree(whole / "consumequeue", root / "consumequeue")
    return root


def delayed_of(root, *, read_only=True):
    with MessageStore.open(root, read_only=read_only, clock=new_clock()) as store:
        return [message.body for message in read_all(store, SCHEDULE_TOPIC, 2)]


def test_tombstones_of_the_delay_topic_are_never_served(without_tail):
    bodies = [b"%d" % number for number in range(40)]
    served = delayed_of(without_tail)
    assert 0 < len(served) < len(bodies)
    assert served == bodies[: len(served)]
    assert delayed_of(without_tail, read_only=False) == served


@pytest.mark.parametrize("mended_by", ["opening", "repair"])
def test_times_of_delivery_that_tombstones_have_are_found_and_mended(without_tail, mended_by):
    report = check_store(without_tail, clock=new_clock())
    wrong = [finding for finding in report.findings if finding.code == "queue-unit-wrong"]
    assert wrong
    assert not report.is_clean
    if mended_by == "opening":
        MessageStore.open(without_tail, clock=new_clock()).close()
    else:
        repair_store(RealFiles(), without_tail, new_clock(), lambda _plan: True)
    assert check_store(without_tail, clock=new_clock()).is_clean
