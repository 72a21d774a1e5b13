"""Queues are what the engine's rules make of them, though splits send runs and no records."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from seglog.storage.files.files import RealFiles
from seglog.storage.format.checkpoint import Checkpoint, encode_checkpoint
from seglog.storage.format.names import segment_file_name
from seglog.storage.format.queue.consume_queue import CQ_UNIT
from seglog.storage.survey.store_survey import survey
from tests.support.audits import audit_as_survey, write_log
from tests.support.material.records import Record, pack_log

SEGMENT_BYTES = 16384
ONE = Record(topic=b"T", body=b"b" * 300)


def write_store(root, queue_offsets, change=lambda units: units):
    """Writes records with these queue offsets and their units, of which the first given wins a slot."""
    records = [replace(ONE, queue_offset=queue_offset) for queue_offset in queue_offsets]
    write_log(root, pack_log(records, segment_size_bytes=SEGMENT_BYTES), SEGMENT_BYTES)
    rows = survey(root, RealFiles()).rows
    checkpoint = Checkpoint(physic_timestamp_ms=int(rows["store_timestamp_ms"][-1]))
    (root / "checkpoint").write_bytes(encode_checkpoint(checkpoint))
    units = np.zeros(max(queue_offsets) + 1, CQ_UNIT.dtype)
    for row in reversed(rows):
        units[int(row["queue_offset"])] = (row["phy_offset"], row["size_bytes"], row["tags_code"])
    write_units(root, "T", change(units))


def write_units(root, topic, units):
    directory = root / "consumequeue" / topic / "0"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / segment_file_name(0)).write_bytes(
        units.astype(CQ_UNIT.dtype).tobytes().ljust(2000, b"\0")  # concatenate made it native
    )


def set_units(**fields):
    def change(units):
        for name, (slot, value) in fields.items():
            units[name][slot] = value
        return units

    return change


CASES = {
    "in order": (range(60), lambda units: units, []),
    "unit that leads elsewhere": (range(60), set_units(phy_offset=(9, 12345)), ["queue-unit-wrong"]),
    "unit of another size": (range(60), set_units(size_bytes=(9, 77)), ["queue-unit-wrong"]),
    "unit of another tag": (range(60), set_units(tags_code=(9, 77)), ["queue-unit-wrong"]),
    "unit that leads to the next record": (
        range(60),
        lambda units: np.concatenate([units[:9], units[10:11], units[10:]]),
        ["queue-unit-wrong"],
    ),
    "unit that is missing": (range(60), set_units(size_bytes=(9, 0)), ["queue-short"]),
    "units that are missing at the end": (range(60), lambda units: units[:50], ["queue-short"]),
    "units behind the log": (
        range(60),
        lambda units: np.concatenate([units, np.array([(10**6, 100, 0)], CQ_UNIT.dtype)]),
        ["queue-beyond-log"],
    ),
    "offsets left out": ([*range(20), *range(25, 60)], lambda units: units, ["queue-gap"]),
    "offset left out but with a unit": (
        [*range(20), *range(21, 60)],
        lambda units: np.concatenate([units[:20], units[:1], units[21:]]),
        ["queue-unit-stray"],
    ),
    "offset given twice": ([*range(30), 29, *range(30, 40)], lambda units: units, []),
    "offset given twice, units lead elsewhere": (
        [*range(30), 29, *range(30, 40)],
        set_units(phy_offset=(29, 1)),
        ["queue-unit-wrong"],
    ),
    "queue made again": ([*range(30), *range(10)], lambda units: units, []),
    "queue made again, of which the units lead to the new life": (
        [*range(30), *range(10)],
        lambda units: units[:0],
        ["queue-short"],
    ),
}


@pytest.mark.parametrize(("queue_offsets", "change", "codes"), CASES.values(), ids=CASES)
def test_queue(queue_offsets, change, codes, tmp_path):
    write_store(tmp_path, list(queue_offsets), change)
    report = audit_as_survey(tmp_path, 1024, 5000, SEGMENT_BYTES)
    assert [finding.code for finding in report.findings] == codes


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        (lambda units: units, ["record-repairable", "record-queue-offset"]),
        (
            set_units(tags_code=(9, 77)),
            ["record-repairable", "record-queue-offset", "queue-unit-wrong"],
        ),
    ],
    ids=["its unit is right", "its unit has another tag"],
)
def test_a_flipped_bit_of_a_queue_offset_leaves_the_unit_as_right_as_it_is(change, codes, tmp_path):
    write_store(tmp_path, range(40), change)
    offsets = [number | (1 << 20 if number == 9 else 0) for number in range(40)]
    records = [replace(ONE, queue_offset=queue_offset) for queue_offset in offsets]
    write_log(tmp_path, pack_log(records, segment_size_bytes=SEGMENT_BYTES), SEGMENT_BYTES)
    report = audit_as_survey(tmp_path, 1024, 5000, SEGMENT_BYTES)
    assert [finding.code for finding in report.findings] == codes


def test_queue_knows_gaps_and_steps_back_in_its_offsets(tmp_path):
    write_store(tmp_path, [0, 1, 2, 5, 6, 6, 7, 9])
    (queue,) = audit_as_survey(tmp_path, 1024, SEGMENT_BYTES).queues
    assert (queue.records, queue.gaps, queue.backwards) == (8, 2, 1)
    assert (queue.first_queue_offset, queue.last_queue_offset) == (0, 9)


def test_units_of_an_lmq_queue_lead_to_records_of_others(tmp_path):
    write_store(tmp_path, range(10))
    rows = survey(tmp_path, RealFiles()).rows
    units = np.zeros(4, CQ_UNIT.dtype)
    for slot, row in enumerate(rows[[1, 4, 5]]):
        units[slot] = (row["phy_offset"], row["size_bytes"], 0)
    units[3] = (rows[5]["phy_offset"] + 1, rows[5]["size_bytes"], 0)
    write_units(tmp_path, "%LMQ%q", units)
    report = audit_as_survey(tmp_path, 1024, SEGMENT_BYTES)
    lmq = report.queues[0]
    assert (lmq.topic, lmq.min_offset, lmq.max_offset, lmq.records) == ("%LMQ%q", 0, 3, 0)
    assert [finding.code for finding in report.findings] == ["queue-unit-stray"]
