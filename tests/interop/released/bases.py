"""Stores that releases of RocketMQ wrote, each of another kind, and how RocketMQ has to be told to open them.

Some are golden stores; the others are in ``tests/golden/releases.tar.xz``, written by
``tests/interop/released/write_bases.py``. All are of the least lengths, so that a log has several files.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from seglog.storage.directory.geometry import FileSizes
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.names import COMMIT_LOG
from tests.interop.judging.questions import SMALL_GEOMETRY, Geometry, index_sizes_of, java_text
from tests.support.damage.campaign import Subject
from tests.support.damage.subjects import half_written
from tests.support.machine.shared import copy_tree, once
from tests.support.material import golden, rocksdb_stores
from tests.support.material.archives import unpack

ARCHIVE: Final = Path(__file__).resolve().parents[2] / "golden" / "releases.tar.xz"
OLD: Final = "4.9.8"

_BATCH_TOPIC: Final = {"queue.type": "BatchCQ"}
_COMPACTION_TOPIC: Final = {"cleanup.policy": "COMPACTION"}
FOLDERS: Final = {"storePathCommitLog": "{root}/commitlog,{root}/log-b"}
LMQ: Final = {"enableLmq": True, "enableMultiDispatch": True}
CRC: Final = {"enabledAppendPropCRC": True}
BATCHES: Final = {"topics": {"Batches": _BATCH_TOPIC}, "mapperFileSizeBatchConsumeQueue": 2_300}
COMPACTED: Final = {
    "topics": {"Compacted": _COMPACTION_TOPIC},
    "compactionMappedFileSize": 10_000,
    "compactionCqMappedFileSize": 1_000,
}
TIMERS: Final = {"mappedFileSizeTimerLog": 5_200, "timerPrecisionMs": 1_000}
_REAL_CONF: Final = {
    "enableConsumeQueueExt": True,
    "mappedFileSizeConsumeQueueExt": 200,
    "mappedFileSizeTimerLog": 4_096,
    "timerPrecisionMs": 1_000,
    **CRC,
}
_ROCKSDB: Final = {"storeType": "defaultRocksDB"}
_BOTH: Final = {
    "rocksdbCQDoubleWriteEnable": True,
    "combineCQLoadingCQTypes": "default;defaultRocksDB",
}


@dataclass(frozen=True)
class Base:
    """A store.

    Attributes:
        release: Of RocketMQ, that wrote it.
        geometry: The lengths of its files.
        config: Properties of MessageStoreConfig, and ``topics`` as the judge takes them; ``{root}`` stands
            for the folder of the store.
    """

    release: str
    config: Mapping[str, object] = field(default_factory=dict)
    geometry: Geometry = SMALL_GEOMETRY

    @property
    def topics(self) -> Mapping[str, Mapping[str, str]]:
        """Attributes by topic."""
        found = self.config.get("topics", {})
        assert isinstance(found, Mapping)
        return found

    @property
    def log_folders(self) -> list[str]:
        """The folders of the log."""
        stated = str(self.config.get("storePathCommitLog", COMMIT_LOG))
        return [path.rpartition("/")[2] for path in stated.split(",")]

    @property
    def has_timer(self) -> bool:
        """Whether a whole broker wrote it, with a timer."""
        return "mappedFileSizeTimerLog" in self.config

    @property
    def judged_by(self) -> str:
        """The release that opens it: its own, and 5.4.0 instead of those before."""
        return max(self.release, "5.4.0")

    def told(self, root: Path) -> dict[str, Any]:
        """Returns the properties for the store in a folder; its own table of topics counts, if it has one."""
        told: dict[str, Any] = {
            name: value.replace("{root}", str(root)) if isinstance(value, str) else value
            for name, value in self.config.items()
        }
        topics = _topics_in(root)
        return told if topics is None else told | {"topics": topics}

    def broker_conf(self, root: Path) -> str:
        """Returns the configuration of a broker with the store in a folder."""
        geometry = self.geometry
        lengths = {
            "mappedFileSizeCommitLog": geometry.segment_size_bytes,
            "mappedFileSizeConsumeQueue": geometry.queue_file_size_bytes,
        }
        told = lengths | index_sizes_of(geometry) | self.told(root)
        return "".join(f"{name}={java_text(value)}\n" for name, value in told.items() if name != "topics")


def _topics_in(root: Path) -> dict[str, dict[str, str]] | None:
    """Returns the attributes of the topics in the table of a store, or in its backup; None without either."""
    for name in ("topics.json", "topics.json.bak"):
        with suppress(OSError, ValueError, AttributeError, KeyError, TypeError):
            table = json.loads((root / "config" / name).read_bytes())["topicConfigTable"]
            return {topic: one.get("attributes") or {} for topic, one in table.items()}
    return None


WRITTEN: Final = {
    "folders of 5.4.0": Base("5.4.0", FOLDERS),
    "shortened by 5.4.0": Base("5.4.0"),
    "LMQ of 5.4.0": Base("5.4.0", LMQ),
    "compacted by 5.4.0": Base("5.4.0", COMPACTED),
    "killed 5.5.0": Base("5.5.0"),
    "folders of 5.5.0": Base("5.5.0", FOLDERS),
    "shortened by 5.5.0": Base("5.5.0"),
    "LMQ of 5.5.0": Base("5.5.0", LMQ),
    "batches of 5.5.0": Base("5.5.0", BATCHES),
    "compacted by 5.5.0": Base("5.5.0", COMPACTED),
    "record CRC of 5.5.0": Base("5.5.0", CRC),
    "broker of 5.5.0": Base("5.5.0", TIMERS),
    "killed 4.9.8": Base(OLD),
    "folders of 4.9.8": Base(OLD, FOLDERS),
    "shortened by 4.9.8": Base(OLD),
    "LMQ of 4.9.8": Base(OLD, LMQ),
    "delays of 4.9.8": Base(OLD),
}
"""Those of the archive."""

BASES: Final = WRITTEN | {
    "roll": Base("5.4.0"),
    "roll-halt": Base("5.4.0"),
    "propcrc": Base("5.4.0", CRC),
    "innerbatch": Base(
        "5.4.0", {"topics": {"BCQTopic": _BATCH_TOPIC}, "mapperFileSizeBatchConsumeQueue": 2_300}
    ),
    "tx": Base("5.4.0"),
    "real-conf-5.4.0": Base("5.4.0", _REAL_CONF, Geometry(1 << 20, 2_000, 100, 400)),
    "rocks54": Base("5.4.0", _ROCKSDB),
    "rocks55sep": Base("5.5.0", _ROCKSDB | {"useSeparateStorePathForRocksdbCQ": True}),
    "double54": Base("5.4.0", _BOTH),
    "rockslmq55": Base("5.5.0", _BOTH | LMQ | {"combineCQUseRocksdbForLmq": True}),
    "idxrocks54": Base("5.4.0", {"indexRocksDBEnable": True, "transRocksDBEnable": True}),
}
"""All, by name: those of one word are golden stores."""

IN_ROCKSDB: Final = frozenset({"rocks54", "rocks55sep", "double54", "rockslmq55"})
"""Those with queues in RocksDB, which a repair refuses."""


@functools.cache
def base_root(name: str) -> Path:
    """Returns the folder of a store, made once for all tests of a run: for reading only."""
    if name in WRITTEN:
        return once("stores of releases", lambda folder: unpack(ARCHIVE, folder)) / name

    def make(folder: Path) -> None:
        is_rocksdb = name in {*rocksdb_stores.NAMES, rocksdb_stores.FILES}
        root = (rocksdb_stores if is_rocksdb else golden).extract(name, folder)
        (root / "lab.properties").unlink(missing_ok=True)  # a note of our lab's

    return once(f"base {name}", make) / name


def older_root(name: str) -> Path:
    """Returns a folder with log and queues as they may have been when the half of them was written."""
    return once(f"older {name}", lambda folder: half_written(base_root(name), folder / "older")) / "older"


def subject_of(name: str) -> Subject:
    """Returns a store as acts of damage take it; what it serves only RocketMQ says."""
    geometry = BASES[name].geometry
    sizes = FileSizes(
        geometry.queue_file_size_bytes, IndexGeometry(geometry.index_slots, geometry.index_entries)
    )
    return Subject(base_root(name), older_root(name), {}, {}, geometry.segment_size_bytes, sizes)


def copy_of(name: str, root: Path) -> Path:
    """Copies a store to a folder that does not exist, and returns that."""
    return copy_tree(base_root(name), root)
