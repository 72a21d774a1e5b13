"""Holds where groups are against what queues have: one verdict for each group and queue, or message.

What decides is small: offsets, delay offsets, half messages that wait, the ends of each queue. It is read
on the driver (:mod:`seglog.spark.reconcile.facts`), queues as an audit finds them. Verdicts about queues
follow from it alone (:mod:`seglog.spark.reconcile.queue_verdicts`); verdicts about messages join it with the
messages on Spark (:mod:`seglog.spark.reconcile.messages`).
"""
