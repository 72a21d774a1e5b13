"""A store in which one message has lived a whole life, as a broker would have written it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from seglog.clock import VirtualClock
from seglog.storage.files.files import RealFiles
from seglog.storage.format.config.config_value import ConfigValue
from seglog.storage.format.names import SCHEDULE_TOPIC
from seglog.storage.format.record import properties as props
from seglog.storage.format.record.record import delay_ms
from seglog.storage.format.record.tags import tags_code
from seglog.storage.small_files.config_file import ConfigFile
from seglog.storage.store import MessageStore
from seglog.storage.writes.values import PutResult
from tests.support.material.stores import SMALL_INDEX

GROUP = "billing"
TOPIC = "orders"
UNIQUE = "C0A8000100002A9F0000000000000001"
BODY = b"42 apples, and a card number"
SEGMENT_BYTES = 64 << 10


class Life(NamedTuple):
    """Where the records of the message are.

    Attributes:
        born: As it was sent.
        delays: Its hops through the delay topic.
        retries: Its copies in the group's retry topic.
        dead: Its copy in the group's DLQ.
    """

    path: Path
    born: PutResult
    delays: list[PutResult]
    retries: list[PutResult]
    dead: PutResult

    @property
    def all(self) -> list[PutResult]:
        """All of them, in log order."""
        hops = [put for pair in zip(self.delays, self.retries, strict=True) for put in pair]
        return [self.born, *hops, self.dead]


def live(
    path: Path,
    *,
    retries: int = 2,
    others: int = 20,
    record_crc: bool = True,
    segment_bytes: int = SEGMENT_BYTES,
) -> Life:
    """Makes a store with a message that failed some times and is dead, among messages that did not."""
    clock = VirtualClock(1_800_000_000_000)
    delays: list[PutResult] = []
    copies: list[PutResult] = []
    with MessageStore.open(
        path,
        segment_size_bytes=segment_bytes,
        queue_file_size_bytes=2000,
        record_crc=record_crc,
        clock=clock,
        index_geometry=SMALL_INDEX["index_geometry"],
    ) as store:
        _others(store, others, "early")
        properties = {props.UNIQ_KEY: UNIQUE}
        born = store.put(TOPIC, BODY, tags="fruit", keys="order-1", properties=properties, flag=7)
        clock.advance(1000)
        failed = {
            **properties,
            props.TAGS: "fruit",
            props.KEYS: "order-1",
            "ORIGIN_MESSAGE_ID": born.message_id,
            "RETRY_TOPIC": TOPIC,
        }
        for times in range(1, retries + 1):
            level = 2 + times
            retry = {
                **failed,
                props.DELAY: str(level),
                props.REAL_TOPIC: f"%RETRY%{GROUP}",
                props.REAL_QUEUE_ID: "0",
            }
            delays.append(_append(store, SCHEDULE_TOPIC, level - 1, retry, times))
            clock.advance(delay_ms(level))
            copies.append(_append(store, f"%RETRY%{GROUP}", 0, retry, times))
            _others(store, others, f"between-{times}")
            clock.advance(500)
        dead = _append(store, f"%DLQ%{GROUP}", 0, {**failed, props.DELAY: "0"}, retries + 1)
        _others(store, others, "late")
    write_offsets(
        path,
        {
            f"{TOPIC}@{GROUP}": {0: born.queue_offset + 1},
            f"{TOPIC}@audit": {0: born.queue_offset},
            f"%RETRY%{GROUP}@{GROUP}": {0: len(copies)},
        },
    )
    return Life(path, born, delays, copies, dead)


def write_offsets(path: Path, table: dict[str, dict[int, int]]) -> None:
    """Writes a consumerOffset.json as a broker does."""
    offsets: dict[str | int, ConfigValue] = {key: dict(queues.items()) for key, queues in table.items()}
    version: dict[str | int, ConfigValue] = {"counter": 1, "stateVersion": 0, "timestamp": 1_800_000_000_000}
    ConfigFile(RealFiles(), path / "config" / "consumerOffset.json").save(
        {"dataVersion": version, "offsetTable": offsets}
    )


def _append(
    store: MessageStore, topic: str, queue_id: int, properties: dict[str, str], times: int
) -> PutResult:
    return store.append(
        topic,
        queue_id,
        BODY,
        props.encode_properties(properties),
        tags_code("fruit"),
        reconsume_times=times,
        flag=7,
    )


def _others(store: MessageStore, count: int, name: str) -> None:
    for number in range(count):
        store.put(
            TOPIC,
            b"other %d" % number,
            keys=f"{name}-{number}",
            properties={props.UNIQ_KEY: f"U-{name}-{number}"},
        )
