"""Stores that are sound, with every kind of file that RocketMQ or seglog keeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from click.testing import CliRunner

from seglog.cli.main import commands
from seglog.storage.store import MessageStore
from tests.support.damage.broker_damage import compacted_once, mixed, table
from tests.support.damage.packs import entries_of, plant_pack
from tests.support.machine.shared import once
from tests.support.material import golden
from tests.support.material.stores import QUEUE_FILE_BYTES, SEGMENT_BYTES, SMALL_INDEX, fill, new_clock

EXPORTED: Final = "rows.jsonl"
RECEIPT: Final = {
    "key": "k", "status": "sent", "group": "g", "old_id": "", "new_id": "", "topic": "Topic0", "queue_id": 0,
    "queue_offset": 0,
}  # fmt: skip
HALF: Final = {"REAL_TOPIC": "Topic0", "REAL_QID": "0", "PGROUP": "p"}
LOCK: Final = {
    "group": "g",
    "topic": "Topic0",
    "brokerName": "broker-a",
    "queueId": 0,
    "clientId": "127.0.0.1@1",
    "ageMs": 10,
    "local": False,
}


@dataclass(frozen=True, slots=True)
class Base:
    """A store that trials start from, and what is in it by name; fields as ``commands.Subject`` has them."""

    root: Path
    topic: str
    group: str
    key: str
    message_id: str
    half_id: str

    @classmethod
    def of(cls, root: Path) -> Base:
        """Looks into a store."""
        half_id = ""
        chosen: tuple[str, str, str] | None = None
        with MessageStore.open(root, read_only=True) as store:
            for queue in store.queues():
                at = (
                    queue.min_offset
                    if queue.topic == "RMQ_SYS_TRANS_HALF_TOPIC"
                    else max(3, queue.min_offset)
                )
                result = store.get(queue.topic, queue.queue_id, at, max_count=1)
                for message in result.messages:
                    if queue.topic == "RMQ_SYS_TRANS_HALF_TOPIC":
                        half_id = message.message_id
                    elif not chosen or (queue.topic, queue.queue_id) == ("Topic0", 0):
                        chosen = queue.topic, (message.keys or ["k1"])[0], message.message_id
        topic, key, message_id = chosen or ("Topic0", "k1", "0" * 32)
        return cls(root, topic, "g", key, message_id, half_id or message_id)


def everyday(root: Path) -> Path:
    """A store of ours in which every file of seglog's own is."""
    for part in range(2):
        with MessageStore.open(
            root,
            segment_size_bytes=SEGMENT_BYTES,
            queue_file_size_bytes=QUEUE_FILE_BYTES,
            index_geometry=SMALL_INDEX["index_geometry"],
            recovery_step_bytes=4096,
            clock=new_clock(),
        ) as store:
            fill(store, 40)
            store.put("%DLQ%g", b"dead", keys=f"d{part}", properties={"RETRY_TOPIC": "Topic0"})
            store.put("RMQ_SYS_TRANS_HALF_TOPIC", b"half", properties=HALF)
    config = {"readQueueNums": 4, "writeQueueNums": 4, "perm": 6}
    names = ("Topic0", "Topic1", "%DLQ%g")
    table(root, "topics.json", topicConfigTable={name: {"topicName": name, **config} for name in names})
    table(root, "consumerOffset.json", offsetTable={"Topic0@g": {"0": 3, "1": 15}})
    table(root, "subscriptionGroup.json", subscriptionGroupTable={"g": {"groupName": "g"}})
    table(root, "delayOffset.json", offsetTable={"1": 0})
    _run("verify", "--seal", root)
    _run("offsets", "reset", root, "g", "Topic0", "--to", 3, "--apply")
    _run("branch", "create", root, "b")
    rows = root.parent / EXPORTED
    _run("export", root, "--topic", "Topic0", "--output", rows)
    ours = root / "seglog"
    parked = [
        {**json.loads(line), "parkedFor": [{"why": "undelivered", "group": "g"}]}
        for line in rows.read_text().splitlines()[:3]
    ]
    files = {
        f"parked/{0:020d}.jsonl": "".join(json.dumps(row) + "\n" for row in parked),
        "receipts/parked.jsonl": json.dumps(RECEIPT) + "\n",
        "locks.json": json.dumps({"drawnMs": 1, "liveMs": 60_000, "locks": [LOCK]}),
        "holes": json.dumps({"holes": []}),
        f"attic/{0:020d}-4096": "was here",
        "evidence/topics.json.00000000": "{]",
        "stray/commitlog/x": "foreign",
        "erased/1.json": "{}",
    }
    for name, text in files.items():
        (ours / name).parent.mkdir(parents=True, exist_ok=True)
        (ours / name).write_text(text)
    entries = entries_of(root)
    folder = plant_pack(root, entries, after=[one for one in entries if one.kind.name == "FILE"])
    (folder / "kept/1").write_bytes(b"kept")
    (root / "epochFileCheckpoint").write_text("1\n0\n1-0\n")
    return root


def broker(root: Path) -> Path:
    """Everything that a RocketMQ broker keeps: timers, transactions, delay levels, filter data."""
    return golden.extract("real-conf", root.parent).rename(root)


BASES: Final[dict[str, Callable[[Path], Path]]] = {
    "everyday": everyday,
    "mixed": mixed,
    "compacted": compacted_once,
    "broker": broker,
}


def base(name: str) -> Base:
    """Returns a store that trials start from, made once for all processes of a run: for reading only.

    Args:
        name: One of ``BASES``.
    """
    return Base.of(once(f"hostile {name}", lambda folder: BASES[name](folder / "store")) / "store")


def _run(*words: object) -> None:
    ran = CliRunner().invoke(commands, list(map(str, words)))
    if ran.exit_code:
        raise AssertionError((words, ran.output))
