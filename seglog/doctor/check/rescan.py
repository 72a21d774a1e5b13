"""Stores that are left to RocketMQ's own rescan: they have an ``abort`` file and an empty checkpoint.

RocketMQ walks the whole log of such a store when it starts, and creates the missing queues and indexes. If
all queue files or all index files are missing, nothing in the store shows the sizes that the broker uses, so
they were removed on purpose: by a repair, or by the operator. Then their absence is a note and no damage.

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
"""Codes of parts that are missing as a whole."""


def excuse_rescanned(findings: Collection[Finding], store: AuditPlan) -> list[Finding]:
    """Returns findings in which those that RocketMQ's rescan resolves are replaced by a note.

    If any queue still has files, other queues without files are not excused.
    """
    codes = MADE_BY_ROCKETMQ - {"queue-missing"} if store.has_queue_files else MADE_BY_ROCKETMQ
    excused = [finding for finding in findings if finding.code in codes]
    if not store.is_rescan_due or not excused:
        return list(findings)
    left = [finding for finding in findings if finding.code not in codes]
    return [*left, Finding("rescan-due", ABORT_FILE)]
