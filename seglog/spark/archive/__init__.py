"""Archives of messages in Parquet, and stores made of them again.

An archive is a folder that holds any number of stores, each under a name:
``data/store=…/topicFolder=…/day=…/*.parquet`` for readers of Parquet (days are UTC, of the store time), and
``_manifest/N.json``, one for each run that added something: its store, its files, the intervals of queue
offsets that they hold, the last record of each queue, and what is missing. What no manifest names does not
count; a run that was interrupted left at most that. So a message is archived once, however often a run is
begun again.

No message is left out in silence. A run first holds the store against what is archived under its name
(:mod:`seglog.spark.archive.continuity`). From the first archived offset of a queue to its end every offset is
archived or named as missing (:mod:`seglog.spark.archive.losses`), also in ``missing.parquet``.

Nothing of a record is lost: ``head``, ``body`` and ``tail`` one after the other are its bytes. A restored
message has another place in the log, and so another offsetMsgId and ``__CRC32#``; all else is as it was.
Placeholders of a compaction are archived as records, so that offsets stay whole, but are no messages:
``placeholder`` is true, and they are counted apart.

Archives are on a file system that knows rename: a local or mounted one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from seglog.spark.archive.archive import archive_store
    from seglog.spark.archive.beforehand import check_archive, check_restore
    from seglog.spark.archive.manifest import EXPIRED, REASONS, Missing, Run
    from seglog.spark.archive.restore import Restored, restore_store
    from seglog.spark.archive.restore_base import Sizes

__all__ = [
    "EXPIRED",
    "REASONS",
    "Missing",
    "Restored",
    "Run",
    "Sizes",
    "archive_store",
    "check_archive",
    "check_restore",
    "restore_store",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "EXPIRED": "manifest",
        "Missing": "manifest",
        "REASONS": "manifest",
        "Restored": "restore",
        "Run": "manifest",
        "Sizes": "restore_base",
        "archive_store": "archive",
        "check_archive": "beforehand",
        "check_restore": "beforehand",
        "restore_store": "restore",
    },
)
