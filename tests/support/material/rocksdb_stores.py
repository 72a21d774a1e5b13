"""Real stores of which RocketMQ has queues in RocksDB, with what it served from them.

``tests/golden/rocksdb.tar.xz`` holds a folder for each, and ``answers.jsonl``: a line for each queue, with
the least and the next offset, and place, size and SHA-256 of the body of each message as RocketMQ's own
store served them from RocksDB. Log files are 64 KiB, queue files 2,000 bytes.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any, Final

from tests.support.machine.shared import copy_tree, once
from tests.support.material.archives import unpack

_ARCHIVE: Final = Path(__file__).resolve().parents[2] / "golden" / "rocksdb.tar.xz"

ALONE: Final = ("rocks54", "rocks55sep")
"""``storeType=defaultRocksDB`` of 5.4.0; the same of 5.5.0 with ``useSeparateStorePathForRocksdbCQ``."""
BESIDE: Final = ("double54", "rockslmq55", "migrated54")
"""``rocksdbCQDoubleWriteEnable``; LMQ queues alone in RocksDB; a store of files before it had RocksDB."""
NAMES: Final = ALONE + BESIDE
"""Healthy stores with queues in RocksDB."""
QUEUE_FOLDERS: Final = dict.fromkeys(NAMES, "consumequeue") | {"rocks55sep": "consumequeue_rocksdb"}
"""Where they have them."""
BROKERS: Final = {
    "broker-rocks54": {"config/topics", "config/subscriptionGroups", "config/consumerOffsets"},
    "broker-rdb54": {"config/rdb"},
}
"""Folders of tables of whole brokers: with ``storeType=defaultRocksDB``, and of files with
``configManagerVersion=v2``. Both have timer, delayed and half messages, and no half message is open."""
FILES: Final = "idxrocks54"
"""A store of files with its key index and transactions in RocksDB."""


def extract(name: str, dest: Path) -> Path:
    """Copies a store to ``dest / name`` and returns that folder."""
    return copy_tree(unpacked() / name, dest / name)


def with_tables(dest: Path, folder: str = "rdb") -> Path:
    """Copies the store of files to ``dest`` and gives it a RocksDB of tables in ``config``."""
    root = extract(FILES, dest)
    add_tables(root, folder)
    return root


def add_tables(root: Path, folder: str = "rdb") -> None:
    """Gives a store a RocksDB in ``config``, where a broker keeps its tables."""
    copy_tree(root / "rocksdbstore", root / "config" / folder)


@functools.cache
def answers(name: str) -> list[dict[str, Any]]:
    """Returns what RocketMQ served from a store, a value for each queue."""
    lines = (unpacked() / "answers.jsonl").read_text().splitlines()
    return [queue for queue in map(json.loads, lines) if queue["store"] == name]


def unpacked() -> Path:
    """Returns the folder of all stores, which are only read."""
    return once("stores with RocksDB", lambda folder: unpack(_ARCHIVE, folder))
