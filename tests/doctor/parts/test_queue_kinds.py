"""A folder of a queue of another kind than its topic has: RocketMQ does not start, also if it is empty."""

from __future__ import annotations

import pytest

from seglog.doctor.check.broker_start import Start
from seglog.doctor.check.check import check_store
from seglog.doctor.check.triage import verdict_on
from tests.support.material import golden


@pytest.mark.parametrize("folder", ["batchconsumequeue/Unknown/0", "batchconsumequeue/TopicTest/0"])
def test_an_empty_batch_queue_of_no_batch_topic_is_not_clean(folder, tmp_path):
    root = golden.extract("broker-store", tmp_path)
    before = check_store(root)
    assert "queue-kind" not in {finding.code for finding in before.findings}
    (root / folder).mkdir(parents=True)
    report = check_store(root)
    assert [finding.file for finding in report.findings if finding.code == "queue-kind"] == [folder]
    assert verdict_on(report).start.start is Start.NO


def test_an_empty_plain_queue_of_a_topic_that_nothing_knows_is_no_fault(tmp_path):
    root = golden.extract("broker-store", tmp_path)
    (root / "consumequeue" / "Unknown" / "0").mkdir(parents=True)
    assert "queue-kind" not in {finding.code for finding in check_store(root).findings}
