"""A process that writes a store of every record kind and says what it wrote; tests stop or kill it.

``python -m tests.interop.judging.writer PATH OPTIONS`` prints, for each acknowledged record, what the real
store must serve of it as a JSON line: the fields of a ``msg`` line that follow from what was asked and
answered, nothing that seglog's readers say. Its kind is ``queued``, or ``logged`` for records that take no
place in a queue. A line of kind ``ready`` follows; then the process waits for the end of its standard input
and closes the store, or goes on writing small messages with ``"endless": true``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from seglog import Durability, MessageStore, NewMessage
from seglog.storage.format.record import sys_flag
from seglog.storage.format.record.host import Host
from seglog.storage.format.record.properties import encode_properties
from seglog.storage.format.record.tags import tags_code
from seglog.storage.writes.values import PutResult
from tests.interop.judging.lines import body_fields
from tests.interop.judging.questions import Geometry
from tests.interop.judging.writing import store_options

Acknowledged = Iterator[dict[str, Any]]

LONG_TOPIC = "%RETRY%" + "g" * 200
UNICODE = {
    "city": "杭州",
    "emoji": "🚀 café",
    "a=b": "c=d",
    "blank": "",
    "UNIQ_KEY": "0A0102030000000018B4AAC200000000",
}
HOSTS = [
    ("10.1.2.3:40000", "127.0.0.1:10911"),
    ("[1050::5:600:300c:326b]:50001", "127.0.0.1:10911"),
    ("10.1.2.3:40000", "[fe80::1]:10911"),
    ("[::1]:1", "[fe80::1]:10911"),
]
TRANSACTION_STATES = [
    0,
    sys_flag.TRANSACTION_PREPARED,
    sys_flag.TRANSACTION_COMMIT,
    sys_flag.TRANSACTION_ROLLBACK,
]


class Writer:
    def __init__(self, store: MessageStore) -> None:
        self.store = store

    def every_kind(self) -> Acknowledged:
        yield from self.plain()
        yield from self.hosts()
        yield from self.long_topics()
        yield from self.transactions()
        yield from self.delayed()
        yield from self.batches()
        yield from self.rolling()
        yield from self.filling_a_queue()

    def plain(self) -> Acknowledged:
        bodies = [b"", b"x", b"\x00" * 100, bytes(range(256)) * 4, "订单号 🚀".encode()]
        for number, body in enumerate(bodies * 4):
            tag = [None, "TagA", "标签"][number % 3]
            keys = [None, "k1", ["k1", "k2"]][number % 3]
            properties = UNICODE if number % 2 else {}
            result = self.store.put(
                "Plain", body, queue_id=number % 2, tags=tag, keys=keys, properties=properties, flag=number
            )
            stored = dict(properties)
            if tag:
                stored["TAGS"] = tag
            if keys:
                stored["KEYS"] = keys if isinstance(keys, str) else " ".join(keys)
            yield wanted(result, body, stored, flag=number)

    def hosts(self) -> Acknowledged:
        for number, (born, store_host) in enumerate(HOSTS):
            yield self.append(
                "Hosts", b"from afar", {"TAGS": "V6"}, born_host=born, store_host=store_host, flag=number
            )

    def long_topics(self) -> Acknowledged:
        for topic in ("t" * 127, "t" * 128, LONG_TOPIC):
            for number in range(3):
                yield self.append(topic, b"long" * number, {"KEYS": f"key{number}"}, reconsume_times=number)

    def transactions(self) -> Acknowledged:
        for number in range(8):
            state = TRANSACTION_STATES[number % 4]
            line = self.append(
                "Orders",
                b"transaction",
                {"TRAN_MSG": "true", "PGROUP": "pg", "TAGS": "Tx"},
                state=state,
                prepared_transaction_offset=1000 * number,
            )
            yield line | {"kind": "queued" if sys_flag.takes_queue_offset(state) else "logged"}

    def delayed(self) -> Acknowledged:
        for level, delay_ms in ((1, 1_000), (3, 10_000), (18, 7_200_000)):
            properties = {"DELAY": str(level), "REAL_TOPIC": "Orders", "REAL_QID": "0"}
            line = self.append("SCHEDULE_TOPIC_XXXX", b"later", properties, queue_id=level - 1)
            yield line | {"tagsCode": line["storeTimestamp"] + delay_ms}

    def batches(self) -> Acknowledged:
        for _ in range(3):
            messages = [
                NewMessage(
                    b"b%d" % number,
                    tags="Batch",
                    keys=f"bk{number}",
                    properties={"n": str(number)},
                    flag=number,
                )
                for number in range(20)
            ]
            result = self.store.put_batch("Batches", messages, queue_id=1)
            position = result.phy_offset
            for number, message in enumerate(messages):
                stored = {"n": str(number), "TAGS": "Batch", "KEYS": f"bk{number}"}
                yield {
                    "kind": "queued",
                    "cqTopic": "Batches",
                    "cqQueueId": 1,
                    "cqOffset": result.queue_offset + number,
                    "flag": number,
                    "properties": stored,
                    "storeTimestamp": result.store_timestamp_ms,
                    "tagsCode": tags_code("Batch"),
                    **({"commitLogOffset": position} if number == 0 else {}),
                    **body_fields(bytes(message.body)),
                }

    def rolling(self) -> Acknowledged:
        """240 KB: some segments of 64 KiB, with fillers of varied sizes between them."""
        for number in range(60):
            body = bytes([number]) * (3_000 + 37 * number)
            yield wanted(self.store.put("Big", body, queue_id=number % 3), body, {})

    def filling_a_queue(self) -> Acknowledged:
        """350 units: four queue files of 2,000 bytes."""
        for number in range(350):
            body = b"%d" % number
            durability = Durability.SYNC if number % 100 == 0 else None
            yield wanted(
                self.store.put("Small", body, tags="Tiny", durability=durability), body, {"TAGS": "Tiny"}
            )

    def endless(self) -> Acknowledged:
        number = 0
        while True:
            body = b"%d" % number * (number % 200)
            yield wanted(self.store.put("Endless", body, queue_id=number % 2), body, {})
            number += 1

    def append(
        self,
        topic: str,
        body: bytes,
        properties: dict[str, str],
        *,
        queue_id: int = 0,
        state: int = 0,
        flag: int = 0,
        born_host: str = "10.1.2.3:40000",
        store_host: str = "127.0.0.1:10911",
        reconsume_times: int = 0,
        prepared_transaction_offset: int = 0,
    ) -> dict[str, Any]:
        born = Host.parse(born_host)
        stored_at = Host.parse(store_host)
        result = self.store.append(
            topic,
            queue_id,
            body,
            encode_properties(properties),
            tags_code(properties.get("TAGS")),
            sys_flag=state,
            flag=flag,
            born_timestamp_ms=1_700_000_000_000 + flag,
            born_host=born,
            store_host=stored_at,
            reconsume_times=reconsume_times,
            prepared_transaction_offset=prepared_transaction_offset,
        )
        bits = state
        bits |= sys_flag.BORN_HOST_V6 if born.is_ipv6 else 0
        bits |= sys_flag.STORE_HOST_V6 if stored_at.is_ipv6 else 0
        return wanted(result, body, properties, flag=flag) | {
            "sysFlag": bits,
            "bornTimestamp": 1_700_000_000_000 + flag,
            "bornHost": born.java_text(),
            "storeHost": stored_at.java_text(),
            "reconsumeTimes": reconsume_times,
            "preparedTransactionOffset": prepared_transaction_offset,
        }


def wanted(result: PutResult, body: bytes, properties: dict[str, str], *, flag: int = 0) -> dict[str, Any]:
    return {
        "kind": "queued",
        "cqTopic": result.topic,
        "cqQueueId": result.queue_id,
        "cqOffset": result.queue_offset,
        "cqPos": result.phy_offset,
        "cqSize": result.size_bytes,
        "tagsCode": tags_code(properties.get("TAGS")),
        "topic": result.topic,
        "queueId": result.queue_id,
        "queueOffset": result.queue_offset,
        "commitLogOffset": result.phy_offset,
        "storeSize": result.size_bytes,
        "storeTimestamp": result.store_timestamp_ms,
        "flag": flag,
        "properties": {name: value for name, value in properties.items() if value},
        **body_fields(body),
    }


def main() -> None:
    options = json.loads(sys.argv[2])
    is_endless = options.pop("endless", False)
    geometry = store_options(Geometry(**options.pop("geometry")))
    with MessageStore.open(sys.argv[1], **geometry, **options) as store:
        writer = Writer(store)
        for line in writer.every_kind():
            print(json.dumps(line))
        print(json.dumps({"kind": "ready", "maxPhyOffset": store.max_phy_offset}), flush=True)
        if is_endless:
            for line in writer.endless():
                print(json.dumps(line), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
