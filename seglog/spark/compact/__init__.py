"""Compaction and retention of whole stores: a plan by default, and a new store that replaces the old one.

A log with dropped messages has this form, so that RocketMQ serves it (tried with RocketMQ 5.4.0):

*The new log begins after the old one.* Kept records are written one after the other into new segments, whose
names continue after the end of the old log. The old segments are removed, as RocketMQ's own retention removes
them. So all unused space is freed, to the byte, and an old offsetMsgId leads to a place before the log's
start: it finds nothing, and never another message. The alternative is to leave records at their places, with
fillers between. That would keep those ids, but a filler frees space only where whole pages are free, so
nothing for messages of a few hundred bytes; and every backup that does not preserve holes would write them
out again. All data that holds places is rewritten: queues, key index, compaction logs.
``preparedTransactionOffset`` is unchanged (RocketMQ finds half messages by queue offset). A store whose
places cannot be rewritten is refused: timer messages (the timer log holds places), branches, stores of a
controller group. A slave has to be copied again from its master.

*Queue offsets do not change, so every slot from a queue's first kept message to its last needs a record.* A
queue unit without a record (size 0, or a gap) ends the queue for RocketMQ, or shifts all later offsets when a
queue is rebuilt from the log. So a dropped message becomes a placeholder: the same topic, queue, offset,
times and hosts, no body, no key, and ``SEGLOG_COMPACTED=1`` as its only property, or no property if the
record was too short. Consumers with a tag filter never see it (it has no tag); others get an empty message.
Before the first kept message there are no placeholders: the queue's minimum rises, as after RocketMQ's
retention. The last slot of a queue is always kept, so that no offset is assigned twice, even if all queues
are rebuilt.

*Topics with* ``cleanup.policy=COMPACTION`` are read from ``compaction/`` only, which is rewritten, without
placeholders. Their records in the log are dropped in the same way.

*The swap* exchanges two folders in one system call: an opening finds the old or the new store.

*Tasks and driver.* A task verifies a split and writes facts about its records beside the new store
(:mod:`~seglog.spark.compact.records`), so the old log is read only twice. Segments, queues, compaction logs
and index files are also written by tasks, one file or queue each. The driver receives a few numbers for each
part of the log and each queue in it.

Limits: in a store with batch or ``%LMQ%`` queues the engine rebuilds these from the new log on the driver,
with 118 bytes of memory for each record that is left. A ``seglog tx commit`` that was interrupted has to be
finished first: its half message no longer leads to its commit.

A record that moves has a new ``physicalOffset``, which ``bodyCRC`` does not cover; ``__CRC32#`` does, and is
computed again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from seglog.spark.compact.compact import Compacted, Compaction
    from seglog.spark.compact.plan import CompactionPlan, TopicPlan
    from seglog.spark.compact.policy import DAY_MS, WORDS, Policy, Verdict
    from seglog.spark.compact.swap import discard_old, files_around, has_old, turn_back_text, undo_swap

__all__ = [
    "DAY_MS",
    "WORDS",
    "Compacted",
    "Compaction",
    "CompactionPlan",
    "Policy",
    "TopicPlan",
    "Verdict",
    "discard_old",
    "files_around",
    "has_old",
    "turn_back_text",
    "undo_swap",
]

if not TYPE_CHECKING:  # a type checker would take any name for one of ours
    __getattr__ = lazy_exports(
        __name__,
        {
            "Compacted": "compact",
            "Compaction": "compact",
            "CompactionPlan": "plan",
            "DAY_MS": "policy",
            "Policy": "policy",
            "TopicPlan": "plan",
            "Verdict": "policy",
            "WORDS": "policy",
            "discard_old": "swap",
            "has_old": "swap",
            "turn_back_text": "swap",
            "files_around": "swap",
            "undo_swap": "swap",
        },
    )
