"""How much of a queue may stay by its bytes is found with memory for a part of the queue only."""

from __future__ import annotations

import tracemalloc

import pytest

from seglog import MessageStore
from seglog.spark.compact.plan import ask, make_task
from seglog.spark.compact.policy import Policy
from seglog.storage.audit.conclude import conclude_log, report_on
from seglog.storage.audit.plan import plan_audit
from seglog.storage.files.files import RealFiles
from tests.support.local_runner import LocalRunner

MESSAGES = 300_000
LIMIT_BYTES = 6 << 20
"""Less than the 36 bytes that each message of the queue would take."""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store of one long queue, and how long a record of it is."""
    root = tmp_path_factory.mktemp("long") / "s"
    with MessageStore.open(root) as opened:
        for _ in range(MESSAGES // 1000):
            opened.put_batch("T", [b"x"] * 1000)
        return root, opened.get("T", 0, 0).messages[0].size_bytes


@pytest.mark.parametrize("kept", [0, 1, 65_535, 65_536, 65_537, 200_000, MESSAGES, MESSAGES + 7])
def test_a_long_queue_is_looked_at_in_parts(store, kept):
    root, record_bytes = store
    files, policies = RealFiles(), {"T": Policy(retention_bytes=kept * record_bytes + record_bytes - 1)}
    plan = plan_audit(root, files, split_bytes=1 << 24)
    asked = ask(plan, policies, 1)
    stitched = conclude_log(plan, LocalRunner(files).scan(plan, asked, None), files)
    audit = report_on(stitched, files)
    tracemalloc.start()
    try:
        task = make_task(files, plan, stitched.log, audit, policies, asked, now_ms=1, allow_undelivered=True)
        _now, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert task.policies["T", 0].oversize_below == max(0, MESSAGES - kept)
    assert most_bytes < LIMIT_BYTES
