"""Batch and further queues (LMQ): missing, extra and wrong units are found, as the survey finds them."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from seglog.storage.audit.log_lookup import LogLookup
from seglog.storage.audit.plan import plan_audit
from seglog.storage.files.files import RealFiles
from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT, BATCH_UNIT_BYTES
from seglog.storage.format.queue.consume_queue import CQ_UNIT
from seglog.storage.splits.split_scan import SplitScan
from seglog.storage.survey.store_survey import survey
from tests.support.audits import audit, audit_as_survey
from tests.support.material.golden import extract
from tests.support.material.mixed import fill_mixed

SPLIT_BYTES = (1024, 5000, 16384)
FIRST_FILE = "00000000000000000000"
UNITS_PER_FILE = 20
BATCH = ("batchconsumequeue/B/0", BATCH_UNIT)
LMQ = ("consumequeue/%LMQ%a/0", CQ_UNIT)
both_kinds = pytest.mark.parametrize(("folder", "layout"), [BATCH, LMQ], ids=["batch", "LMQ"])


@pytest.fixture(scope="module")
def written(module_folders):
    root = module_folders.mktemp("mixed")
    fill_mixed(root, 140)
    return root


@pytest.fixture
def root(written, tmp_path):
    return shutil.copytree(written, tmp_path / "store")


def change(path, layout, edit):
    """Lets ``edit`` change the units of a file in place."""
    units = np.frombuffer(bytearray(path.read_bytes()), layout.dtype)
    edit(units)
    path.write_bytes(units.tobytes())


def cut_last(path, layout):
    """Takes the last unit that was written out of a file."""
    content = path.read_bytes()
    used = -(-len(content.rstrip(b"\0")) // layout.size_bytes) * layout.size_bytes
    path.write_bytes(content[: used - layout.size_bytes].ljust(len(content), b"\0"))


def found(report):
    return [
        (finding.code, finding.file, finding.position_bytes, finding.messages) for finding in report.findings
    ]


def test_intact_store_has_nothing_wrong_and_all_its_queues(root):
    report = audit_as_survey(root, *SPLIT_BYTES)
    assert (report.findings, report.is_clean) == ((), True)
    names = [(queue.topic, queue.queue_id, queue.kind) for queue in report.queues]
    lmqs = [("%LMQ%a", 0, "plain"), ("%LMQ%b", 0, "plain")]
    assert names == [*lmqs, ("B", 0, "batch"), ("B", 1, "batch"), ("P", 0, "plain"), ("P", 1, "plain")]
    by_kind = {queue.topic: queue for queue in report.queues}
    assert by_kind["%LMQ%b"].records == by_kind["%LMQ%b"].max_offset > UNITS_PER_FILE
    assert by_kind["B"].max_offset > by_kind["B"].records > UNITS_PER_FILE
    assert {(queue.gaps, queue.backwards) for queue in report.queues} == {(0, 0)}


def test_numbers_of_a_batch_queue_are_those_of_its_records(root):
    rows = survey(root, RealFiles())
    (queue,) = [queue for queue in audit(root, 5000).queues if (queue.topic, queue.queue_id) == ("B", 1)]
    units = rows.batch_queues["B", 1].units
    assert (queue.records, queue.bytes) == (len(units), units["size_bytes"].sum())
    assert (queue.first_queue_offset, queue.last_queue_offset) == (0, units["batch_size"].sum() - 1)
    assert queue.first_store_timestamp_ms == units["store_timestamp_ms"][0]
    assert queue.last_store_timestamp_ms == units["store_timestamp_ms"][-1]


@both_kinds
def test_wrong_places_are_found(root, folder, layout):
    def edit(units):
        units["phy_offset"][[3, 7]] += 1

    change(root / folder / FIRST_FILE, layout, edit)
    report = audit_as_survey(root, *SPLIT_BYTES)
    place = 3 * layout.size_bytes
    assert found(report) == [("queue-unit-wrong", f"{folder}/{FIRST_FILE}", place, 2)]


@both_kinds
def test_wrong_tags_code_is_found(root, folder, layout):
    def edit(units):
        units["tags_code"][5] ^= 1

    change(root / folder / FIRST_FILE, layout, edit)
    report = audit_as_survey(root, *SPLIT_BYTES)
    place = 5 * layout.size_bytes
    assert found(report) == [("queue-unit-wrong", f"{folder}/{FIRST_FILE}", place, 1)]


@both_kinds
def test_missing_unit_in_the_middle_is_found(root, folder, layout):
    def edit(units):
        units[4] = np.zeros(1, layout.dtype)[0]

    change(root / folder / FIRST_FILE, layout, edit)
    report = audit_as_survey(root, *SPLIT_BYTES)
    place = 4 * layout.size_bytes
    assert found(report) == [("queue-short", f"{folder}/{FIRST_FILE}", place, 1)]


@both_kinds
def test_missing_last_unit_is_found(root, folder, layout):
    *_, last = sorted((root / folder).iterdir())
    cut_last(last, layout)
    (finding,) = audit_as_survey(root, *SPLIT_BYTES).findings
    assert (finding.code, finding.file, finding.messages) == ("queue-short", f"{folder}/{last.name}", 1)


@both_kinds
def test_extra_unit_behind_the_log_is_found(root, folder, layout):
    *_, last = sorted((root / folder).iterdir())

    def edit(units):
        at = int((units["size_bytes"] > 0).sum())
        units[at] = units[at - 1]
        units["phy_offset"][at] = 1 << 40

    change(last, layout, edit)
    (finding,) = audit_as_survey(root, *SPLIT_BYTES).findings
    assert (finding.code, finding.messages) == ("queue-beyond-log", 1)
    assert finding.file == f"{folder}/{last.name}"


@both_kinds
def test_extra_unit_that_leads_into_a_record_is_found(root, folder, layout):
    *_, last = sorted((root / folder).iterdir())

    def edit(units):
        at = int((units["size_bytes"] > 0).sum())
        units[at] = units[at - 1]
        units["phy_offset"][at] += 1

    change(last, layout, edit)
    (finding,) = audit_as_survey(root, *SPLIT_BYTES).findings
    assert (finding.code, finding.messages) == ("queue-unit-stray", 1)


@pytest.mark.parametrize("folder", [BATCH[0], LMQ[0]], ids=["batch", "LMQ"])
def test_missing_queue_is_found_with_its_messages(root, folder):
    topic, queue_id = folder.split("/")[1:]
    (queue,) = [
        queue for queue in audit(root, 5000).queues if (queue.topic, queue.queue_id) == (topic, int(queue_id))
    ]
    shutil.rmtree(root / folder)
    report = audit_as_survey(root, *SPLIT_BYTES)
    assert found(report) == [("queue-missing", folder, 0, queue.max_offset)]
    assert queue in report.queues


@both_kinds
def test_short_and_strange_files_are_named_where_they_lie(root, folder, layout):
    *_, last = sorted((root / folder).iterdir())
    last.write_bytes(last.read_bytes()[: -layout.size_bytes])
    (root / folder / "notes.txt").write_text("mine")
    findings = audit_as_survey(root, *SPLIT_BYTES).findings
    assert {(finding.code, finding.file) for finding in findings} == {
        ("queue-file-size", f"{folder}/{last.name}"),
        ("queue-file-stray", f"{folder}/notes.txt"),
    }


def test_lmq_unit_without_record_of_its_own_may_lead_to_any_record(root):
    """So it is in queues whose records lost their properties: RocketMQ serves what the unit leads to."""
    rows = survey(root, RealFiles()).rows

    def edit(units):
        at = int((units["size_bytes"] > 0).sum())
        units[at] = (rows["phy_offset"][0], rows["size_bytes"][0], 0)

    *_, last = sorted((root / LMQ[0]).iterdir())
    change(last, CQ_UNIT, edit)
    report = audit_as_survey(root, *SPLIT_BYTES)
    assert report.is_clean
    assert report.queues[0].max_offset == report.queues[0].records + 1


def test_records_that_agree_with_their_lmq_units_are_not_read_again(root, monkeypatch):
    asked = []
    led_to = LogLookup.led_to

    def noting(self, units):
        asked.append(int(units["size_bytes"].sum()))
        return led_to(self, units)

    monkeypatch.setattr(LogLookup, "led_to", noting)
    audit(root, 5000)
    assert asked
    assert not any(asked)


@pytest.mark.parametrize("is_attribute_lost", [False, True], ids=["declared", "told by inner batches"])
def test_topic_that_lost_its_batch_queues_is_still_a_batch_topic(root, is_attribute_lost):
    shutil.rmtree(root / "batchconsumequeue")
    if is_attribute_lost:
        shutil.rmtree(root / "config")
    report = audit_as_survey(root, *SPLIT_BYTES)
    assert {finding.code for finding in report.findings} == {"queue-missing"}
    assert {queue.kind for queue in report.queues if queue.topic == "B"} == {"batch"}
    # Then single messages before the first inner batch were taken for those of a plain queue.
    assert (report.walked_again > 0) == is_attribute_lost


def test_messages_lost_with_the_end_of_the_log_are_known_from_all_queues(root):
    """Power failed before the log was on the disk, but after its queues were."""
    rows = survey(root, RealFiles()).rows
    *_, last = sorted((root / "commitlog").iterdir())
    content = last.read_bytes()
    end = int(rows["phy_offset"][-10]) - int(last.name)
    assert end > 0
    last.write_bytes(content[:end].ljust(len(content), b"\0"))
    report = audit_as_survey(root, *SPLIT_BYTES)
    lost = {
        finding.expected.split(" of ")[1] for finding in report.findings if finding.code == "messages-lost"
    }
    assert lost == {"B/0", "B/1", "P/0", "P/1"}


def test_intact_batch_queue_travels_as_one_run_without_units(root):
    plan = plan_audit(root, RealFiles(), split_bytes=16384)
    scan = SplitScan(RealFiles(), plan.root, plan.geometry, plan.batch_topics)
    stretches = [stretch for split in plan.splits for stretch in scan.run(split)]
    scan.close()
    assert len(plan.splits) > 1
    for stretch in stretches:
        assert [run.queue_id for run in stretch.batch_runs] == [0, 1]
        assert not any(run.units for run in stretch.batch_runs)


def test_damaged_unit_travels_alone(root):
    def edit(units):
        units["batch_size"][3] += 1

    change(root / BATCH[0] / FIRST_FILE, BATCH_UNIT, edit)
    plan = plan_audit(root, RealFiles(), split_bytes=16384)
    scan = SplitScan(RealFiles(), plan.root, plan.geometry, plan.batch_topics)
    (stretch,) = scan.run(plan.splits[0])
    scan.close()
    runs = [(run.records, run.first_index, len(run.units)) for run in stretch.batch_runs if run.queue_id == 0]
    assert [(first, size) for _records, first, size in runs] == [(0, 0), (-1, BATCH_UNIT_BYTES), (4, 0)]


@pytest.mark.parametrize("name", ["innerbatch", "outerbatch", "comp"])
@pytest.mark.parametrize("kind", ["flip", "zero", "cut"])
def test_damaged_queues_of_real_stores(name, kind, tmp_path):
    """Each queue file is damaged in turn, in the middle of what was written."""
    root = extract(name, tmp_path)
    paths = sorted(
        path
        for folder in ("consumequeue", "batchconsumequeue")
        for path in (root / folder).rglob("0*")
        if path.is_file()
    )
    assert paths
    for path in paths:
        content = path.read_bytes()
        middle = len(content.rstrip(b"\0")) // 2
        damaged = bytearray(content)
        if kind == "flip":
            damaged[middle] ^= 0x10
        elif kind == "zero":
            damaged[middle : middle + 100] = bytes(len(damaged[middle : middle + 100]))
        else:
            del damaged[middle:]
        path.write_bytes(damaged)
        report = audit_as_survey(root, 5000, 65536)
        assert not report.is_clean
        path.write_bytes(content)
