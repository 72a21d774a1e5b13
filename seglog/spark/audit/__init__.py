"""Audits: the findings of ``seglog check``, computed in splits on Spark, for many stores in one job.

A check walks the log of one store in threads. An audit divides the logs of all stores into splits. Tasks walk
the splits on any machine (:mod:`seglog.spark.audit.job`), with the same code as the check. The result of a
split is one interval for each queue in it. The driver draws its conclusions from them with the check's own
code (:class:`seglog.doctor.check.check.StoreCheck`), so audit and check have the same findings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from seglog.spark.audit.stores import audit_store, audit_stores
    from seglog.spark.audit.tables import (
        finding_rows,
        findings_frame,
        queue_kind,
        queue_rows,
        queues_frame,
        stores_frame,
    )
    from seglog.spark.audit.unread import Unread, UnreadStore, unread_into

__all__ = [
    "Unread",
    "UnreadStore",
    "audit_store",
    "audit_stores",
    "finding_rows",
    "findings_frame",
    "queue_kind",
    "queue_rows",
    "queues_frame",
    "stores_frame",
    "unread_into",
]

if not TYPE_CHECKING:  # a type checker would take any name for one of ours
    __getattr__ = lazy_exports(
        __name__,
        {
            "Unread": "unread",
            "UnreadStore": "unread",
            "audit_store": "stores",
            "audit_stores": "stores",
            "finding_rows": "tables",
            "findings_frame": "tables",
            "queue_kind": "tables",
            "queue_rows": "tables",
            "queues_frame": "tables",
            "stores_frame": "tables",
            "unread_into": "unread",
        },
    )
