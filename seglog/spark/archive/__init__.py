"""Archives of messages in Parquet, and stores restored from them.

An archive is a folder that holds any number of stores, each under a name. It has the files
``data/store=…/topicFolder=…/day=…/*.parquet`` for readers of Parquet (days are UTC, of the store time), and
``_manifest/N.json``, one for each run that added something: its store, its files, the intervals of queue
offsets in them, the last record of each queue, and the missing messages. A file that no manifest lists does
not count; a run that was interrupted leaves only such files. So a message is archived once, however often a
run is repeated.

No message is left out silently. A run first compares the store with the archived messages of its name
(:mod:`seglog.spark.archive.continuity`). From the first archived offset of a queue to its end every offset is
archived or listed as missing (:mod:`seglog.spark.archive.losses`), also in ``missing.parquet``.

All bytes of a record are kept: ``head``, ``body`` and ``tail``, concatenated, are its bytes. A restored
message has another place in the log, and so another offsetMsgId and ``__CRC32#``; everything else is
unchanged. Placeholders of a compaction are archived as records, so that offsets have no gaps, but do not
count as messages: ``placeholder`` is true, and they are counted separately.

An archive needs a file system with rename: a local or mounted one.
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

if not TYPE_CHECKING:  # a type checker would take any name for one of ours
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
