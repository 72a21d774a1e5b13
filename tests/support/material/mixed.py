"""A store with queues of all kinds: plain ones, batch queues, and further ones (LMQ)."""

from __future__ import annotations

import json
from pathlib import Path

from seglog.clock import VirtualClock
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.record import properties as props
from seglog.storage.format.record.inner_batch import BatchMessage, encode_batch
from seglog.storage.format.record.sys_flag import INNER_BATCH, NEED_UNWRAP
from seglog.storage.format.record.tags import tags_code
from seglog.storage.store import MessageStore
from seglog.storage.writes.values import NewMessage

LMQS = ("%LMQ%a", "%LMQ%b", "%LMQ%a,%LMQ%b")


def declare(root: Path, **topics: dict[str, str]) -> Path:
    """Writes ``config/topics.json`` with attributes of topics and returns the store directory."""
    (root / "config").mkdir(parents=True, exist_ok=True)
    table = {name: {"topicName": name, "attributes": attributes} for name, attributes in topics.items()}
    (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": table}))
    return root


def fill_mixed(root: Path, count: int, clock: VirtualClock | None = None) -> None:
    """Writes ``count`` records in turn: inner batches and single messages of topic ``B``, ``P`` with LMQ."""
    declare(root, B={"queue.type": "BatchCQ"}, P={})
    clock = clock or VirtualClock(1_800_000_000_000)
    with MessageStore.open(
        root,
        segment_size_bytes=16384,
        queue_file_size_bytes=400,
        clock=clock,
        index_geometry=IndexGeometry(50, 200),
    ) as store:
        for number in range(count):
            clock.advance(number % 3)
            body = bytes([number % 251]) * (number * 37 % 300)
            if number % 5 < 2:
                put_inner(store, number % 4 + 1, body, queue_id=number % 2)
            elif number % 5 == 2:
                store.put_batch("B", [NewMessage(body, tags="t")] * 2, queue_id=number % 2)
            else:
                asked = {"INNER_MULTI_DISPATCH": LMQS[number % 3]} if number % 4 else {}
                store.put("P", body, queue_id=number % 2, properties=asked, tags="a")


def put_inner(store: MessageStore, count: int, body: bytes = b"", *, queue_id: int = 0) -> None:
    """Appends one inner batch of ``count`` messages to topic ``B``."""
    raw = props.encode_properties({"TAGS": "a"})
    messages = encode_batch([BatchMessage(body)] * count)
    store.append("B", queue_id, messages, raw, tags_code("a"), sys_flag=INNER_BATCH | NEED_UNWRAP)
