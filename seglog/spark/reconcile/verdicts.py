"""The verdicts of a reconciliation: about a group in a queue, and about a message for a group."""

from __future__ import annotations

from typing import Final

OK: Final = "ok"
LAG: Final = "lag"
AHEAD: Final = "ahead"
BELOW_MIN: Final = "below-min"
ORPHAN: Final = "orphan"
STALLED: Final = "stalled"
RETRYING: Final = "retrying"
DEAD: Final = "dead"

DELIVERED: Final = "delivered"
PENDING: Final = "pending"
SCHEDULED: Final = "scheduled"
EXPIRED: Final = "expired"
UNCOMMITTED: Final = "uncommitted"
LOST: Final = "lost"
DUPLICATED: Final = "duplicated"
COMPACTED: Final = "compacted"
PASSED: Final = "passed"

QUEUE_VERDICTS: Final = {
    ORPHAN: "the group is not in subscriptionGroup.json, or there is no such topic",
    AHEAD: "the offset is behind the end of the queue: what comes next would be passed over",
    BELOW_MIN: "the offset is before the queue's first message: retention or a compaction took some",
    DEAD: "dead letters of the group wait in its %DLQ% topic",
    STALLED: "the group lags and has not moved since the result given with --since",
    RETRYING: "messages that failed wait in the group's %RETRY% topic",
    LAG: "messages wait for the group",
    OK: "the group has got everything",
}
"""Verdicts about a group in a queue; the first that is true is given."""

MESSAGE_VERDICTS: Final = {
    LOST: "its place in the queue is there and its record is not, or a receipt names it and nothing has it",
    EXPIRED: "retention, or a compaction in front of the queue, took it before the group came to it",
    UNCOMMITTED: "a half message that was neither committed nor rolled back",
    SCHEDULED: "waits in the delay topic or the timer wheel for its time",
    COMPACTED: "a compaction dropped it and left a placeholder, which clients get as an empty message",
    DUPLICATED: "an earlier message of its topic has the same UNIQ_KEY",
    DEAD: "the group gave up: a copy is in its %DLQ% topic",
    RETRYING: "the group failed: a copy waits in its %RETRY% topic, or for its time to get there",
    PASSED: "the group's offset is behind it, and retention took it: nothing says if the group failed",
    DELIVERED: "the group's offset is behind it, and no copy of it waits or is dead",
    PENDING: "the group's offset is at or before it, or the group has none in the queue",
}
"""Verdicts about a message for a group; the first that is true is given."""

QUEUE_FINDINGS: Final = frozenset({AHEAD, BELOW_MIN, STALLED, DEAD})
"""Verdicts about queues that set the exit code 1."""
MESSAGE_FINDINGS: Final = frozenset({LOST, EXPIRED, DUPLICATED, DEAD})
"""Verdicts about messages that set the exit code 1."""
