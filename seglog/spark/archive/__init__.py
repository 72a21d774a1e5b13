"""Archives of messages in Parquet, and stores made of them again.

An archive is a folder: ``data/topic=…/day=…/*.parquet`` for readers of Parquet (days are UTC, of the
store time), and ``_manifest/N.json``, one for each run that added something: its files, and the intervals of
queue offsets that they hold. What no manifest names does not count; a run that was interrupted left at most
that. So a message is archived once, however often a run is begun again.

Nothing of a record is lost: ``head``, ``body`` and ``tail`` one after the other are its bytes. A restored
message has another place in the log, and so another offsetMsgId and ``__CRC32#``; all else is as it was.

Archives are on a file system that knows rename: a local or mounted one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from seglog.spark.archive.archive import archive_store
    from seglog.spark.archive.folder import Run
    from seglog.spark.archive.restore import Restored, Sizes, restore_store

__all__ = [
    "Restored",
    "Run",
    "Sizes",
    "archive_store",
    "restore_store",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "Restored": "restore",
        "Run": "folder",
        "Sizes": "restore",
        "archive_store": "archive",
        "restore_store": "restore",
    },
)
