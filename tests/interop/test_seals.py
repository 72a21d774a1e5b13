"""RocketMQ knows nothing of seals: what it writes into a sealed segment makes them stale, not rotten."""

from __future__ import annotations

import pytest

from seglog import MessageStore
from seglog.doctor.check.verify import verify_store
from tests.interop.judging.judge import Judge
from tests.interop.judging.questions import SMALL_GEOMETRY, JavaMessages
from tests.support.material.sealed import flip

pytestmark = pytest.mark.interop

SEGMENT_BYTES = SMALL_GEOMETRY.segment_size_bytes


def codes(report):
    return {finding.code for finding in report.findings}


@pytest.mark.parametrize("record_crc", [True, False])
def test_a_log_that_rocketmq_cut_and_went_on_with_has_stale_seals(judge: Judge, tmp_path, record_crc):
    path = tmp_path / "store"
    with MessageStore.open(
        path,
        segment_size_bytes=SEGMENT_BYTES,
        queue_file_size_bytes=SMALL_GEOMETRY.queue_file_size_bytes,
        record_crc=record_crc,
    ) as store:
        for number in range(450):
            store.put("Sealed", b"%d " % number * 150)
    assert len(verify_store(path, seal=True).sealed) == 4

    # RocketMQ drops everything behind a damaged record if it does not trust the checkpoint.
    damaged = path / "commitlog" / f"{2 * SEGMENT_BYTES:020d}"
    record_bytes = int.from_bytes(damaged.read_bytes()[:4])
    flip(damaged, 40 * record_bytes + 300)
    (path / "checkpoint").unlink()
    (path / "abort").touch()
    assert codes(verify_store(path)) == {"seal-rot", "record-repairable"}

    judge.append(path, [JavaMessages(topic="FromJava", count=5, body_bytes=900)], SMALL_GEOMETRY)
    cut = verify_store(path)
    assert codes(cut) <= {"seal-stale", "log-torn-tail", "queue-beyond-log"}
    assert {finding.file for finding in cut.findings if finding.code == "seal-stale"} == {
        f"commitlog/{number * SEGMENT_BYTES:020d}" for number in (2, 3)
    }

    judge.append(path, [JavaMessages(topic="FromJava", count=200, body_bytes=900)], SMALL_GEOMETRY)
    assert codes(verify_store(path)) == {"seal-stale", "seal-missing"}
    assert verify_store(path, seal=True).sealed[:2] == (2 * SEGMENT_BYTES, 3 * SEGMENT_BYTES)
    report = verify_store(path)
    assert codes(report) == set()
    assert len(report.by_records) == 1
    with MessageStore.open(path) as store:
        assert store.max_offset("FromJava", 0) == 205
    assert verify_store(path).is_clean
