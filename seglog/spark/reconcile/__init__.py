"""Compares the progress of groups with the queues: one verdict for each group and queue, or message.

The deciding facts are small: offsets, delay offsets, half messages that wait, the ends of each queue. They
are read on the driver (:mod:`seglog.spark.reconcile.facts`); the queues come from an audit. Verdicts about
queues follow from these facts alone (:mod:`seglog.spark.reconcile.queue_verdicts`). Verdicts about messages
join the facts with the messages on Spark (:mod:`seglog.spark.reconcile.messages`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from seglog.spark.reconcile.counts import MessageCounts
    from seglog.spark.reconcile.outcome import Outcome, reconcile_all
    from seglog.spark.reconcile.queue_verdicts import QueueVerdict
    from seglog.spark.reconcile.since import load_earlier
    from seglog.spark.reconcile.steps import COPY, NextStep, next_steps
    from seglog.spark.reconcile.verdicts import MESSAGE_VERDICTS, OK, QUEUE_VERDICTS

__all__ = [
    "COPY",
    "MESSAGE_VERDICTS",
    "OK",
    "QUEUE_VERDICTS",
    "MessageCounts",
    "NextStep",
    "Outcome",
    "QueueVerdict",
    "load_earlier",
    "next_steps",
    "reconcile_all",
]

if not TYPE_CHECKING:  # a type checker would take any name for one of ours
    __getattr__ = lazy_exports(
        __name__,
        {
            "COPY": "steps",
            "MESSAGE_VERDICTS": "verdicts",
            "MessageCounts": "counts",
            "NextStep": "steps",
            "OK": "verdicts",
            "Outcome": "outcome",
            "QUEUE_VERDICTS": "verdicts",
            "QueueVerdict": "queue_verdicts",
            "load_earlier": "since",
            "next_steps": "steps",
            "reconcile_all": "outcome",
        },
    )
