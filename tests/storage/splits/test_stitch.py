"""What splits saw becomes one log, also when they saw it at different times."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seglog.storage.audit.plan import plan_audit
from seglog.storage.files.files import RealFiles
from seglog.storage.splits.split_scan import SplitScan
from seglog.storage.survey.store_survey import survey
from tests.support.audits import assert_agrees, audit_as_survey, conclude, write_log
from tests.support.material.records import Record, pack_log

SEGMENT_BYTES = 16384
ONE = Record(topic=b"T", body=b"b" * 700)


def numbered(count):
    return [replace(ONE, queue_offset=number) for number in range(count)]


def test_writer_that_goes_on_between_two_splits_leaves_no_hole(tmp_path):
    log = pack_log(numbered(30), segment_size_bytes=SEGMENT_BYTES)
    write_log(tmp_path, log, SEGMENT_BYTES)
    plan = plan_audit(tmp_path, RealFiles(), split_bytes=4096)
    scan = SplitScan(RealFiles(), plan.root, plan.geometry, plan.batch_topics)
    write_log(tmp_path, log[: 3 * len(ONE.pack())].ljust(len(log), b"\0"), SEGMENT_BYTES)
    seen = [stretch for split in plan.splits[:2] for stretch in scan.run(split)]
    write_log(tmp_path, log, SEGMENT_BYTES)
    seen += [stretch for split in plan.splits[2:] for stretch in scan.run(split)]
    scan.close()
    report = conclude(plan, seen, RealFiles())
    assert (report.records, report.holes) == (30, ())
    assert_agrees(report, survey(tmp_path, RealFiles()))


def test_splits_may_answer_in_any_order(tmp_path):
    log = bytearray(pack_log(numbered(30), segment_size_bytes=SEGMENT_BYTES))
    log[5000:5100] = bytes(100)
    write_log(tmp_path, bytes(log), SEGMENT_BYTES)
    plan = plan_audit(tmp_path, RealFiles(), split_bytes=2048)
    scan = SplitScan(RealFiles(), plan.root, plan.geometry, plan.batch_topics)
    seen = [stretch for split in reversed(plan.splits) for stretch in scan.run(split)]
    scan.close()
    assert_agrees(conclude(plan, seen, RealFiles()), survey(tmp_path, RealFiles()))


def test_intact_split_is_one_stretch_with_one_interval_for_each_queue(tmp_path):
    records = [replace(ONE, queue_id=number % 3, queue_offset=number // 3) for number in range(18)]
    write_log(tmp_path, pack_log(records), SEGMENT_BYTES)
    plan = plan_audit(tmp_path, RealFiles(), split_bytes=SEGMENT_BYTES)
    scan = SplitScan(RealFiles(), plan.root, plan.geometry, plan.batch_topics)
    (stretch,) = scan.run(plan.splits[0])
    scan.close()
    assert [interval.records for interval in stretch.intervals] == [6, 6, 6]


def test_missing_file_in_the_middle_is_a_hole_from_end_to_start(tmp_path):
    write_log(tmp_path, pack_log(numbered(60), segment_size_bytes=SEGMENT_BYTES), SEGMENT_BYTES)
    sorted((tmp_path / "commitlog").iterdir())[1].unlink()
    report = audit_as_survey(tmp_path, 1024, 5000)
    assert [(hole.phy_offset, hole.size_bytes, hole.why) for hole in report.holes] == [
        (SEGMENT_BYTES, SEGMENT_BYTES, "missing-file")
    ]


def test_empty_file_and_no_file_at_all_are_empty_logs(tmp_path):
    (tmp_path / "commitlog").mkdir()
    assert audit_as_survey(tmp_path, 1024).records == 0
    write_log(tmp_path, bytes(1), SEGMENT_BYTES)
    assert audit_as_survey(tmp_path, 1024).records == 0
    assert audit_as_survey(tmp_path, 1024).is_clean


OTHER = replace(ONE, topic=b"Other")
BEHIND_A_HOLE = {
    "another queue's record behind a stale one": [replace(ONE, queue_offset=2), OTHER],
    "a newer stretch behind a stale one": [replace(ONE, queue_offset=2), None, replace(ONE, queue_offset=9)],
    "nothing but stale ones": [replace(ONE, queue_offset=2), replace(ONE, queue_offset=3)],
    "a rollback record, which has no queue offset": [replace(ONE, sys_flag=0xC)],
}


@pytest.mark.parametrize("behind", BEHIND_A_HOLE.values(), ids=BEHIND_A_HOLE)
def test_behind_a_hole_the_log_goes_on_at_the_first_newer_record(behind, tmp_path):
    """All have one store time: then queue offsets decide what is newer."""
    log = pack_log([*numbered(6), ONE, *(record or ONE for record in behind)])
    lost = [6, *(7 + number for number, record in enumerate(behind) if record is None)]
    size = len(ONE.pack())
    for number in lost:
        log = log[: number * size] + bytes(size) + log[(number + 1) * size :]
    write_log(tmp_path, log, SEGMENT_BYTES)
    audit_as_survey(tmp_path, 1024, 3000, SEGMENT_BYTES)
