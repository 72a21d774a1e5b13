"""Random stores with messages of every fate, and what was planted, as plain values."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path

from seglog.clock import VirtualClock
from seglog.storage.format.names import segment_file_name
from seglog.storage.format.record.inner_batch import BatchMessage, encode_batch
from seglog.storage.format.record.properties import encode_properties
from seglog.storage.format.record.sys_flag import INNER_BATCH, NEED_UNWRAP, TRANSACTION_COMMIT
from seglog.storage.format.timer.timer_checkpoint import TimerCheckpoint, encode_timer_checkpoint
from seglog.storage.store import MessageStore
from tests.support.material.log_records import iter_log
from tests.support.material.stores import SMALL_INDEX

SEGMENT_BYTES = 65536
START_MS = 1_800_000_000_000
HALF, OP = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"
DELAY, WHEEL = "SCHEDULE_TOPIC_XXXX", "rmq_sys_wheel_timer"
TOPICS = {"orders": 4, "shared": 2, "quiet": 1, "Batches": 2}
GROUPS = ("billing", "audit", "stock")


@dataclass
class Planted:
    """A store, and the tables beside it.

    Attributes:
        offsets: By group, topic and queue.
        delays: By queue of the delay topic.
        ends: Where each queue ended when the store was closed.
        sent: Ids and places that producers were told.
    """

    root: Path
    offsets: dict[tuple[str, str, int], int] = field(default_factory=dict)
    delays: dict[int, int] = field(default_factory=dict)
    ends: dict[tuple[str, int], int] = field(default_factory=dict)
    timer_read_ms: int = 0
    groups: list[str] = field(default_factory=list)
    sent: list[tuple[str, str, int, int]] = field(default_factory=list)


def plant(root: Path, seed: int, count: int = 260) -> Planted:
    """Makes a store; the same seed makes the same one."""
    return _Planter(root, seed).run(count)


class _Planter:
    def __init__(self, root: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.name = f"S{seed}"
        self.clock = VirtualClock(START_MS + seed * 7)
        self.planted = Planted(root)
        self.halves: list[int] = []
        (root / "config").mkdir(parents=True)
        table = {topic: {"topicName": topic, "attributes": {}} for topic in (*TOPICS, "later")}
        table["Batches"]["attributes"] = {"queue.type": "BatchCQ"}
        (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": table}))

    def run(self, count: int) -> Planted:
        root = self.planted.root
        with MessageStore.open(
            root,
            segment_size_bytes=SEGMENT_BYTES,
            queue_file_size_bytes=20_000,
            clock=self.clock,
            index_geometry=SMALL_INDEX["index_geometry"],
        ) as store:
            for number in range(count):
                self.clock.advance(self.chance.randrange(5))
                self.step(store, number)
            ends = {(queue.topic, queue.queue_id): queue.max_offset for queue in store.queues()}
        self.planted.ends = ends
        self.take_by_retention()
        self.damage()
        self.write_tables(ends)
        return self.planted

    def step(self, store: MessageStore, number: int) -> None:
        kind = self.chance.choices(
            ("plain", "batch", "copy", "half", "delay", "timer"), (60, 6, 14, 8, 8, 4)
        )[0]
        getattr(self, f"put_{kind}")(store, f"{self.name}-{number}")

    def append(self, store: MessageStore, topic: str, queue_id: int, given: dict[str, str], **more):
        body = more.pop("body", None) or self.chance.randbytes(self.chance.randrange(100, 900))
        return store.append(topic, queue_id, body, encode_properties(given), 0, **more)

    def put_plain(self, store: MessageStore, unique: str) -> None:
        topic = self.chance.choices(("orders", "shared", "quiet"), (6, 2, 1))[0]
        given = {"UNIQ_KEY": unique} if self.chance.random() < 0.8 else {"KEYS": "none"}
        again = 2 if self.chance.random() < 0.08 and "UNIQ_KEY" in given else 1
        for _ in range(again):
            queue_id = self.chance.randrange(TOPICS[topic])
            put = self.append(store, topic, queue_id, given)
            self.planted.sent.append(
                (given.get("UNIQ_KEY", put.message_id), topic, queue_id, put.queue_offset)
            )
            self.origin = topic, given.get("UNIQ_KEY"), put.message_id

    def put_batch(self, store: MessageStore, unique: str) -> None:
        size = self.chance.randrange(1, 5)
        body = encode_batch([BatchMessage(b"b") for _ in range(size)])
        given = {"UNIQ_KEY": unique}
        if self.chance.random() < 0.3:
            self.append(store, "Batches", self.chance.randrange(2), given)
        else:
            flags = INNER_BATCH | NEED_UNWRAP
            self.append(store, "Batches", self.chance.randrange(2), given, body=body, sys_flag=flags)

    def put_copy(self, store: MessageStore, unique: str) -> None:
        """Sends the last message back: to retry, to wait for its retry, or to the dead."""
        if not hasattr(self, "origin"):
            return
        topic, key, message_id = self.origin
        given = {"RETRY_TOPIC": topic, "ORIGIN_MESSAGE_ID": message_id}
        if key is not None and self.chance.random() < 0.7:
            given["UNIQ_KEY"] = key
        else:
            given["UNIQ_KEY"] = f"copy-{unique}"
        group = self.chance.choice(GROUPS[:2])
        where = self.chance.choice(("retry", "hop", "dead"))
        if where == "hop":
            target = {"REAL_TOPIC": f"%RETRY%{group}", "REAL_QID": "0"}
            self.append(store, DELAY, self.chance.randrange(2, 4), given | target, reconsume_times=1)
        else:
            name = f"%RETRY%{group}" if where == "retry" else f"%DLQ%{group}"
            self.append(store, name, 0, given, reconsume_times=2)

    def put_half(self, store: MessageStore, unique: str) -> None:
        topic = self.chance.choice(("orders", "later"))
        given = {"UNIQ_KEY": unique, "REAL_TOPIC": topic, "REAL_QID": "1", "PGROUP": "p"}
        half = self.append(store, HALF, 0, given)
        end = self.chance.choice(("commit", "rollback", "none"))
        if end == "commit":
            flags = TRANSACTION_COMMIT
            self.append(store, "orders", 1, {"UNIQ_KEY": unique}, sys_flag=flags)
        if end != "none":
            self.append(store, OP, 0, {"TAGS": "d"}, body=b"%d," % half.queue_offset)
            self.halves.append(half.queue_offset)

    def put_delay(self, store: MessageStore, unique: str) -> None:
        topic = self.chance.choice(("orders", "shared", "later"))
        given = {"UNIQ_KEY": unique, "REAL_TOPIC": topic, "REAL_QID": "0", "DELAY": "3"}
        self.append(store, DELAY, 2, given)

    def put_timer(self, store: MessageStore, unique: str) -> None:
        due_ms = self.clock.now_ms() + self.chance.randrange(-200, 200)
        given = {"UNIQ_KEY": unique, "REAL_TOPIC": "orders", "REAL_QID": "0", "TIMER_OUT_MS": str(due_ms)}
        self.append(store, WHEEL, 0, given)
        end = self.chance.choice(("rolls", "cancelled", "stays"))
        if end == "rolls":
            self.append(store, WHEEL, 0, given | {"TIMER_OUT_MS": str(due_ms + 150)})
        elif end == "cancelled":
            self.append(store, WHEEL, 0, given | {"UNIQ_KEY": f"del-{unique}", "TIMER_DEL_UNIQKEY": unique})

    def take_by_retention(self) -> None:
        (self.planted.root / "commitlog" / segment_file_name(0)).unlink()

    def damage(self) -> None:
        """Flips a bit in the bodies of some messages in the middle of the log."""
        found = [record for record in iter_log(self.planted.root) if record.topic in ("orders", "Batches")]
        middle = found[len(found) // 3 : -len(found) // 3]
        for record in self.chance.sample(middle, 5):
            segment, at = divmod(record.phy_offset, SEGMENT_BYTES)
            path = self.planted.root / "commitlog" / segment_file_name(segment * SEGMENT_BYTES)
            data = bytearray(path.read_bytes())
            data[at + record.row.body_at + 1] ^= 4
            path.write_bytes(data)

    def write_tables(self, ends: dict[tuple[str, int], int]) -> None:
        planted, chance = self.planted, self.chance
        consumed = {"billing": ("orders", "shared"), "audit": ("orders", "Batches"), "stock": ("orders",)}
        for group, topics in consumed.items():
            for topic in topics:
                for queue_id in range(TOPICS[topic] if group != "stock" else 2):
                    end = ends[topic, queue_id]
                    offset = chance.choice((0, end // 8, end // 2, end - 1, end, end, end + 3))
                    planted.offsets[group, topic, queue_id] = offset
        planted.offsets["gone", "orders", 0] = 1
        planted.offsets["billing", "vanished", 0] = 7
        planted.offsets["billing", "later", 0] = 0
        for group in GROUPS[:2]:
            retry = ends.get((f"%RETRY%{group}", 0), 0)
            planted.offsets[group, f"%RETRY%{group}", 0] = chance.choice((0, retry // 2, retry))
        half = ends.get((HALF, 0), 0)
        planted.offsets["CID_RMQ_SYS_TRANS", HALF, 0] = half // 3
        planted.offsets["CID_RMQ_SYS_TRANS", OP, 0] = 0
        planted.delays = {queue_id: ends.get((DELAY, queue_id), 0) // 2 for queue_id in (2, 3)}
        planted.timer_read_ms = self.clock.now_ms() - 100
        planted.groups = list(GROUPS)
        table: dict[str, dict[str, int]] = {}
        for (group, topic, queue_id), offset in planted.offsets.items():
            table.setdefault(f"{topic}@{group}", {})[str(queue_id)] = offset
        config = planted.root / "config"
        (config / "consumerOffset.json").write_text(json.dumps({"offsetTable": table}))
        levels = {str(queue_id + 1): offset for queue_id, offset in planted.delays.items()}
        (config / "delayOffset.json").write_text(json.dumps({"offsetTable": levels}))
        known = {group: {"groupName": group} for group in planted.groups}
        (config / "subscriptionGroup.json").write_text(json.dumps({"subscriptionGroupTable": known}))
        check = TimerCheckpoint(last_read_timestamp_ms=planted.timer_read_ms)
        (config / "timercheck").write_bytes(encode_timer_checkpoint(check))
