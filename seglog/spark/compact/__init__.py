"""Compaction and retention of whole stores: a plan by default, and a new store in place of the old.

How a log with dropped messages looks, so that RocketMQ serves it (tried on the real store, 5.4.0):

*A new log after the old.* Kept records are written one after the other into new segments whose names go
on where the old log ended; the old segments go, as RocketMQ's own retention takes them. So the space is
really given back, to the byte, and an offsetMsgId from before names a place below the log's start: it finds
nothing, never another message. Leaving records where they are, with fillers between, would keep those ids;
but a filler gives space back only where whole pages are free, so nothing for messages of a few hundred
bytes, and every backup that does not know holes would write them out again. Everything that names places is
written anew: queues, key index, compaction logs, ``preparedTransactionOffset`` stays as it was (RocketMQ
finds half messages by queue offset). What cannot be moved is refused: timer messages (the timer log names
places), branches, stores of a controller group. A slave has to be copied again from its master.

*Queue offsets stay, so every slot between a queue's first kept and its last message needs a record.* A
queue unit without one (size 0, or a gap) ends the queue for RocketMQ or shifts all later offsets as soon as
a queue is rebuilt from the log. So a dropped message becomes a placeholder: the same topic, queue, offset,
times and hosts, no body, no key, and ``SEGLOG_COMPACTED=1`` as its only property, or none where the record
was too short. Consumers that asked for tags never see it (no tag); others get an empty message. In front of
the first kept message nothing is left: the queue's minimum rises, which RocketMQ knows from its retention.
The last slot of a queue always stays, so that no offset is given twice, even if all queues are rebuilt.

*Topics with* ``cleanup.policy=COMPACTION`` are read from ``compaction/`` only: that is written anew, without
placeholders. Their records in the log are dropped alike.

*The swap* exchanges two folders in one system call: an opening finds the old or the new one.

*Who does what.* A task verifies a split and leaves what is to be known of its records beside the new store
(:mod:`~seglog.spark.compact.records`), so that the old log is read twice in all; segments, queues, compaction
logs and files of the index are written by tasks too, each for itself. The driver sees a few numbers for each
part of the log and queue in it.

Limits: in a store with batch or ``%LMQ%`` queues the engine makes these from the new log on the driver, with
118 bytes of memory for each record that is left. A ``seglog tx commit`` that was interrupted has to be
finished first: its half no longer leads to its commit.

A record that moves has a new ``physicalOffset``, which ``bodyCRC`` does not cover; ``__CRC32#`` does, and is
computed anew.
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
