"""Holds where groups are against what queues have: one verdict for each group and queue, or message.

What decides is small: offsets, delay offsets, half messages that wait, the ends of each queue. It is read
on the driver (:mod:`seglog.spark.reconcile.facts`), queues as an audit finds them. Verdicts about queues
follow from it alone (:mod:`seglog.spark.reconcile.queue_verdicts`); verdicts about messages join it with the
messages on Spark (:mod:`seglog.spark.reconcile.messages`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from seglog.spark.reconcile.counts import MessageCounts
    from seglog.spark.reconcile.outcome import Outcome, reconcile_all
    from seglog.spark.reconcile.queue_verdicts import QueueVerdict
    from seglog.spark.reconcile.since import load_earlier
    from seglog.spark.reconcile.verdicts import MESSAGE_VERDICTS, OK, QUEUE_VERDICTS

__all__ = [
    "MESSAGE_VERDICTS",
    "OK",
    "QUEUE_VERDICTS",
    "MessageCounts",
    "Outcome",
    "QueueVerdict",
    "load_earlier",
    "reconcile_all",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "MESSAGE_VERDICTS": "verdicts",
        "MessageCounts": "counts",
        "OK": "verdicts",
        "Outcome": "outcome",
        "QUEUE_VERDICTS": "verdicts",
        "QueueVerdict": "queue_verdicts",
        "load_earlier": "since",
        "reconcile_all": "outcome",
    },
)
