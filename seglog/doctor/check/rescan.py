"""Stores that are left to RocketMQ's own rescan: an abort file, and a checkpoint that says nothing.

RocketMQ walks the whole log of such a store when it starts, and makes from it what is not there. So where
no queue file or index file is left, which alone could tell how the broker divides them, that they are
missing is no damage, but was left on purpose: a repair, or who deleted them.

Source: ``CommitLog.java recoverAbnormally`` and ``isMmapFileMatchedRecover``: no record is older than a
checkpoint of 0, so recovery starts with the first file and dispatches every record.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from seglog.storage.audit import AuditPlan
from seglog.storage.findings import Finding
from seglog.storage.format.names import ABORT_FILE

MADE_BY_ROCKETMQ: Final = frozenset({"queue-missing", "index-missing", "index-due"})
"""Codes of what is not there, as a whole."""


def excuse_rescanned(findings: Collection[Finding], store: AuditPlan) -> list[Finding]:
    """Returns findings with a note in place of those that RocketMQ's rescan answers.

    Where one queue still has files, others that lack theirs are not excused.
    """
    checkpoint = store.checkpoint
    is_unflushed = checkpoint.physic_timestamp_ms == 0 == checkpoint.logics_timestamp_ms
    is_rescanned = store.mode == "abnormal" and is_unflushed
    queues = (*store.queue_files.values(), *store.batch_files.values())
    codes = MADE_BY_ROCKETMQ - {"queue-missing"} if any(queue.sizes for queue in queues) else MADE_BY_ROCKETMQ
    excused = [finding for finding in findings if finding.code in codes]
    if not is_rescanned or not excused:
        return list(findings)
    left = [finding for finding in findings if finding.code not in codes]
    return [*left, Finding("rescan-due", ABORT_FILE)]
