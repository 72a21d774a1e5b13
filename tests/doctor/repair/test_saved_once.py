"""A message that a repair saves for several reasons is counted once, and is no loss as well."""

from __future__ import annotations

import shutil
import struct

import pytest

from seglog.clock import SystemClock
from seglog.doctor.check import check_store, verdict_on
from seglog.doctor.repair.repair import repair_store
from seglog.errors import Ending
from seglog.storage.files.files import RealFiles
from seglog.storage.findings.ending import ending_of
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from tests.support.damage.broker_damage import poke, put, small_store
from tests.support.material.sealed import flip

MESSAGES = 5
QUEUE = "consumequeue/Topic0/0"
IN_BODY = 95


def damaged(root, which):
    """Makes a store with one queue, and flips a bit in the body of a message."""
    with small_store(root, record_crc=False) as store:
        for number in range(MESSAGES):
            store.put("Topic0", b"body-%d" % number * 6, queue_id=0)
    place = int(survey(root, RealFiles()).rows["phy_offset"][which])
    flip(root / f"commitlog/{0:020d}", place + IN_BODY)
    return root


def no_unit(which):
    return put(f"{QUEUE}/*", 20 * which, bytes(20))


def no_queue(root):
    shutil.rmtree(root / QUEUE)


def overwrite(root, which):
    """Overwrites a record with zeros."""
    unit = min((root / QUEUE).iterdir()).read_bytes()[20 * which :]
    phy_offset, size_bytes = struct.unpack_from(">qi", unit)
    poke(root / f"commitlog/{0:020d}", phy_offset, bytes(size_bytes))


def served(root):
    with MessageStore.open(root, read_only=True) as store:
        return len(store.get("Topic0", 0, 0, 2 * MESSAGES).messages)


@pytest.mark.parametrize(
    ("which", "further", "saved"),
    [
        (0, None, {0, 1, 2, 3, 4}),
        (0, no_unit(0), {0, 1, 2, 3, 4}),
        (0, no_unit(1), {0, 1, 2, 3, 4}),
        (0, no_queue, {0, 1, 2, 3, 4}),
        (2, None, {2, 3, 4}),
        (2, no_unit(1), {1, 2, 3, 4}),
        (2, no_unit(2), {2, 3, 4}),
        (2, no_unit(3), {2, 3, 4}),
        (2, no_queue, {0, 1, 2, 3, 4}),
        (4, None, {4}),
        (4, no_unit(0), {0, 4}),
        (4, no_unit(4), {4}),
        (4, no_queue, {0, 1, 2, 3, 4}),
    ],
)
def test_each_message_that_a_repair_saves_counts_once(tmp_path, which, further, saved):
    root = damaged(tmp_path / "store", which)
    if further is not None:
        further(root)
    report = check_store(root)
    verdict = verdict_on(report)
    assert verdict.saved == len(saved)
    assert (verdict.lost, verdict.is_at_least, report.lost_messages) == (0, False, 0)
    assert ending_of(report.findings) is Ending.FINDINGS
    repair_store(RealFiles(), root, SystemClock(), lambda _plan: True)
    assert check_store(root).is_clean
    assert served(root) == MESSAGES


def test_a_gap_keeps_the_messages_that_no_mend_brings_back(tmp_path):
    root = damaged(tmp_path / "store", 3)
    overwrite(root, 1)
    for which in (1, 3):
        no_unit(which)(root)
    report = check_store(root)
    assert report.messages.lost == 1
    assert [one.messages for one in report.findings if one.code == "queue-gap"] == [1]


def test_tombstones_that_a_queue_lacks_are_no_saved_messages(tmp_path):
    root = damaged(tmp_path / "store", 2)
    overwrite(root, 2)
    repair_store(RealFiles(), root, SystemClock(), lambda _plan: True)
    no_queue(root)
    report = check_store(root)
    assert report.messages.lost == 1
    assert verdict_on(report).saved == MESSAGES - 1
