"""The stores that campaigns of random damage are made on: three of our own, three of RocketMQ's."""

from __future__ import annotations

import functools
import json
import pickle
import shutil
from pathlib import Path
from typing import Final

from seglog.storage.directory.geometry import FileSizes
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.names import COMMIT_LOG, CONSUME_QUEUE
from seglog.storage.format.queue.compaction import compaction_sizes
from seglog.storage.format.record.inner_batch import BatchMessage, encode_batch
from seglog.storage.format.record.properties import encode_properties
from seglog.storage.format.record.sys_flag import (
    INNER_BATCH,
    NEED_UNWRAP,
    TRANSACTION_COMMIT,
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
)
from seglog.storage.store import MessageStore
from tests.support.damage.campaign import COMPACTED, Subject
from tests.support.machine.shared import once
from tests.support.material import golden
from tests.support.material.stores import QUEUE_FILE_BYTES, SEGMENT_BYTES, fill, new_clock

SUBJECTS: Final = ("own killed", "own with record CRC", "own of every kind", "roll", "propcrc", "real-conf")
"""The last is a whole broker directory: timer, delay levels, transactions, filter data, config files."""

_OWN_SIZES: Final = FileSizes(QUEUE_FILE_BYTES, IndexGeometry(50, 200))
_GOLDEN_SIZES: Final = FileSizes(2000, IndexGeometry(500, 2000))
_BROKER_SIZES: Final = FileSizes(2000, IndexGeometry(100, 400), 1 << 20)


@functools.cache
def shared_subject(name: str) -> Subject:
    """Returns one of :data:`SUBJECTS`, made once for all tests of a run: for reading only."""

    def make(folder: Path) -> None:
        (folder / "made").mkdir()
        (folder / "subject").write_bytes(pickle.dumps(make_subject(name, folder / "made")))

    # Written by a process of this run.
    made: Subject = pickle.loads((once(f"subject {name}", make) / "subject").read_bytes())  # noqa: S301
    return made


def make_subject(name: str, folder: Path) -> Subject:
    """Makes one of :data:`SUBJECTS` in an empty folder."""
    if name.startswith("own"):
        return _own(folder, name)
    root = golden.extract(name, folder)
    # A note of our lab's, and what RocketMQ keeps in RocksDB: a check says that it does not look at that.
    (root / "lab.properties").unlink(missing_ok=True)
    shutil.rmtree(root / "rocksdbstore", ignore_errors=True)
    sizes = _BROKER_SIZES if name == "real-conf" else _GOLDEN_SIZES
    return Subject.of(root, half_written(root, folder / "older"), sizes)


def half_written(root: Path, older: Path) -> Path:
    """Copies log and queues as they may have been once: nothing in the second half of what was written."""
    for part in (COMMIT_LOG, CONSUME_QUEUE):
        for path in sorted((root / part).rglob("*")):
            if path.is_file():
                content = path.read_bytes()
                kept = content[: len(content.rstrip(b"\0")) // 2].ljust(len(content), b"\0")
                target = older / path.relative_to(root)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(kept)
    return older


def _put_every_kind(store: MessageStore, number: int) -> None:
    properties = encode_properties({"KEYS": f"k{number}"})
    match number % 6:
        case 0:
            store.put("Plain", b"p%d" % number * 9, tags="TagA", keys=f"k{number}", queue_id=number % 4)
        case 1:
            for state in (TRANSACTION_PREPARED, TRANSACTION_COMMIT, TRANSACTION_ROLLBACK):
                store.append("Orders", 0, b"t%d" % number, properties, 0, sys_flag=state)
        case 2:
            body = encode_batch([BatchMessage(b"b%d-%d" % (number, each)) for each in range(3)])
            store.append("Batches", 0, body, properties, 0, sys_flag=INNER_BATCH | NEED_UNWRAP)
        case 3:
            further = {"INNER_MULTI_DISPATCH": "%LMQ%a,%LMQ%b", "KEYS": f"k{number}"}
            store.put("Mqtt", b"l%d" % number * 20, properties=further)
        case 4:
            delayed = {"DELAY": "3", "REAL_TOPIC": "Orders", "REAL_QID": "0"}
            store.put("SCHEDULE_TOPIC_XXXX", b"d%d" % number, queue_id=2, properties=delayed)
        case 5:
            store.put(COMPACTED, b"c%d" % number * 5, keys=f"key{number % 5}")


def _own(folder: Path, kind: str) -> Subject:
    root = folder / "store"
    attributes = {COMPACTED: {"cleanup.policy": "COMPACTION"}, "Batches": {"queue.type": "BatchCQ"}}
    topics = ("Plain", "Orders", "Batches", "Mqtt", "SCHEDULE_TOPIC_XXXX", COMPACTED)
    config = {"topicConfigTable": {topic: {"attributes": attributes.get(topic, {})} for topic in topics}}
    if kind == "own of every kind":
        (root / "config").mkdir(parents=True)
        (root / "config" / "topics.json").write_text(json.dumps(config))
    store = MessageStore.open(
        root,
        clock=new_clock(),
        record_crc=kind == "own with record CRC",
        compaction_sizes=compaction_sizes(4000, 460),
        segment_size_bytes=SEGMENT_BYTES,
        queue_file_size_bytes=QUEUE_FILE_BYTES,
        index_geometry=IndexGeometry(50, 200),
    )
    for half in range(2):
        if kind == "own of every kind":
            for number in range(half * 60, half * 60 + 60):
                _put_every_kind(store, number)
        else:
            fill(store, 60, topics=3)
        store.flush()
        if half == 0:
            shutil.copytree(root, folder / "older")
    if kind == "own killed":
        root = shutil.copytree(root, folder / "killed")
    store.close()
    return Subject.of(root, folder / "older", _OWN_SIZES)
