"""A record with a flipped bit that can still be read: all that look at the store call it repairable."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from seglog.cli.read.reading import survey_store
from seglog.doctor.check.check import check_store
from seglog.doctor.repair.repair import plan_repair
from seglog.storage.files.files import RealFiles
from seglog.storage.findings.findings import Finding
from seglog.storage.format.record.record import HEAD_V4
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from tests.support.audits import audit
from tests.support.material.stores import new_clock

MESSAGES = 150


def flip(root: Path, number: int, field: str, bit: int) -> None:
    """Makes a store of which no record has a checksum of its head, and flips a bit of one record."""
    with MessageStore.open(root, segment_size_bytes=16384, record_crc=False) as store:
        for at in range(MESSAGES):
            store.put("topic", b"%d" % at + b"x" * 100, keys="k", queue_id=at % 2)
    row = survey(root, RealFiles()).rows[number]
    place, size = int(row["phy_offset"]), int(row["size_bytes"])
    path = root / "commitlog" / f"{place - place % 16384:020d}"
    log = bytearray(path.read_bytes())
    at = place % 16384
    if field == "topic":
        at = log.index(b"topic", at, at + size)
    else:
        at += HEAD_V4.offsets[field] + {"queue_id": 3, "queue_offset": 7}[field]
    log[at] ^= 1 << bit
    path.write_bytes(log)


def codes_of(findings: Iterable[Finding]) -> list[str]:
    """Returns what is named; a queue that puts an offset right names that too."""
    return sorted(one.code for one in findings if one.code != "record-queue-offset")


@pytest.mark.parametrize("number", [0, 71, MESSAGES - 10])
@pytest.mark.parametrize("bit", [0, 3])
@pytest.mark.parametrize("field", ["queue_id", "topic", "queue_offset"])
def test_a_record_with_a_flipped_bit_that_can_be_read_is_repairable(field, bit, number, memory_path: Path):
    root = memory_path / "store"
    flip(root, number, field, bit)
    plan = plan_repair(RealFiles(), root, new_clock())
    seen, check = survey_store(root, verify=True), check_store(root, clock=new_clock())
    audits = [audit(root, split_bytes) for split_bytes in (1 << 40, 4096)]
    with MessageStore.open(root, read_only=True, clock=new_clock()) as store:
        found = [store.recovery.findings, seen.findings, check.findings, *(one.findings for one in audits)]
    codes = [codes_of(findings) for findings in found]
    assert codes == [codes[0]] * len(codes)
    queues = (len(seen.all_queues), len(check.queues), *(len(one.queues) for one in audits))
    counts = [(one.messages, one.lost) for one in (seen.counts, *(one.counts for one in audits))]
    counts.append((check.messages.messages, check.messages.lost))
    assert plan.left == []
    assert codes[0] == ["record-repairable"]
    assert set(queues) == {2}
    assert set(counts) == {(MESSAGES, 0)}
