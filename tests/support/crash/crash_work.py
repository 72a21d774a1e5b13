"""What a process does with its store between two crashes, and what the model then knows.

Everything is small, so that log, queue and index files start over every few steps.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

from typing_extensions import override

from seglog.clock import VirtualClock, as_ms
from seglog.errors import ConfigError, CorruptError
from seglog.storage.directory.broker_topics import TOPICS_FILE
from seglog.storage.format.config.config_value import ConfigValue
from seglog.storage.format.names import CONFIG
from seglog.storage.format.record import properties as props
from seglog.storage.format.record.inner_batch import BatchMessage, encode_batch
from seglog.storage.format.record.sys_flag import (
    INNER_BATCH,
    NEED_UNWRAP,
    TRANSACTION_COMMIT,
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
)
from seglog.storage.format.record.tags import tags_code
from seglog.storage.seals.sealer import Sealer
from seglog.storage.small_files.config_file import ConfigFile
from seglog.storage.store import MessageStore
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.values import NewMessage
from tests.support.crash.crash_files import CrashFiles
from tests.support.crash.crash_loop import put_together
from tests.support.crash.crash_model import Model, ViolationError, Wanted
from tests.support.material.records import Record

STORE: Final = Path("/store")
SEGMENT_BYTES: Final = 16384
_CONFIG: Final = STORE / CONFIG / "consumerOffset.json"
_PLAIN_QUEUES: Final = (("A", 0), ("A", 1), ("B", 0), ("C" * 130, 0))
_BATCH_TOPIC: Final = "I"
_QUEUES: Final = (*_PLAIN_QUEUES, (_BATCH_TOPIC, 0))
_BODY_BYTES: Final = (0, 0, 10, 60, 300, 900, 2500, 5000)
_HOUR_BACK_MS: Final = -3_600_000
_TRANSACTION: Final = (TRANSACTION_PREPARED, TRANSACTION_ROLLBACK, TRANSACTION_COMMIT)


class StillClock(VirtualClock):
    """A clock that no thread waits for: background threads never get their turn, the workload takes it."""

    @override
    def advance(self, by: int | timedelta) -> None:
        self._now_ms += as_ms(by)


class Work:
    """The steps of a workload.

    Args:
        chance: Draws them.
        clock: The store's.
        model: Notes what was put, and what is certain.
        tell: Called with what is done, for people.
    """

    def __init__(
        self, chance: random.Random, clock: StillClock, model: Model, tell: Callable[[str], None]
    ) -> None:
        self._chance = chance
        self._clock = clock
        self._model = model
        self._tell = tell
        self._number = 0
        self._configs: set[int | None] = {None}
        self._has_batch_queues = False

    def declare(self, files: CrashFiles) -> None:
        """Makes one of the topics one with batch queues, before there is a store."""
        self._tell("batch queues")
        self._has_batch_queues = True
        topics: dict[str, dict[str, object]] = {topic: {} for topic, _queue_id in _QUEUES}
        topics[_BATCH_TOPIC] = {"attributes": {"queue.type": "BatchCQ"}}
        files.make_dirs(STORE / CONFIG)
        files.write_file(STORE / CONFIG / TOPICS_FILE, json.dumps({"topicConfigTable": topics}).encode())
        files.sync_dir(STORE / CONFIG)

    def step(self, store: MessageStore, files: CrashFiles) -> None:
        """Does one thing; now and then time passes, or the clock is set back."""
        is_set_back = self._chance.random() < 0.05
        self._clock.advance(_HOUR_BACK_MS if is_set_back else self._chance.choice((0, 0, 1, 3, 1500)))
        kinds: dict[Callable[[], None], int] = {
            partial(self._put, store): 50,
            partial(self._put_batch, store): 12,
            partial(self._put_half, store): 8,
            partial(self._put_to_further, store): 8,
            partial(self._put_inner_batch, store): 8 * self._has_batch_queues,
            partial(self._flush, store): 6,
            partial(self._index, store): 4,
            partial(self._seal, store, files): 4,
            partial(self._save, files): 6,
            partial(self._put_together, store): 8,
        }
        self._chance.choices(list(kinds), list(kinds.values()))[0]()

    def put_again(self, store: MessageStore) -> None:
        """Puts what was lost once more, as producers do: other bytes of the same sizes, in the same order."""
        for lost in self._model.lost[: self._chance.randint(0, 3)]:
            if lost.sys_flag:
                continue
            self._number += 1
            number = b"%08d" % self._number
            properties = {**lost.properties, "KEYS": f"k{self._number:08d}"}
            for added in (props.INNER_MULTI_QUEUE_OFFSET, props.CRC32):
                properties.pop(added, None)
            body = number + self._chance.randbytes(len(lost.body) - len(number))
            self._put_one(store, Wanted(lost.topic, lost.queue_id, body, properties))

    def check_config(self, files: CrashFiles) -> None:
        """Holds the config file against what was saved.

        Raises:
            ViolationError: It is neither what was saved last nor what was being saved.
        """
        try:
            found = _config(files).load(_config_number)
        except ConfigError as error:
            raise ViolationError("config cannot be read", repr(error)) from error
        if found not in self._configs:
            raise ViolationError("config is neither the old nor the new", (found, self._configs))

    # ---------------------------------------------------------------------------------------- putting

    def _put(self, store: MessageStore) -> None:
        self._put_one(store, self._message(store, *self._chance.choice(_QUEUES)))

    def _put_to_further(self, store: MessageStore) -> None:
        plain = self._message(store, *self._chance.choice(_PLAIN_QUEUES))
        names = self._chance.choice(("%LMQ%x", "%LMQ%y", "%LMQ%x,%LMQ%y"))
        properties = {**plain.properties, props.INNER_MULTI_DISPATCH: names}
        self._put_one(store, Wanted(plain.topic, plain.queue_id, plain.body, properties))

    def _put_one(self, store: MessageStore, wanted: Wanted) -> None:
        def put(durability: Durability) -> list[int]:
            made = store.put(
                wanted.topic,
                wanted.body,
                queue_id=wanted.queue_id,
                properties=wanted.properties,
                durability=durability,
            )
            return [made.phy_offset]

        self._do(store, [wanted], put)

    def _put_batch(self, store: MessageStore) -> None:
        topic, queue_id = self._chance.choice(_QUEUES)
        wanted = [self._message(store, topic, queue_id) for _ in range(self._chance.randint(1, 5))]
        while sum(len(item.body) for item in wanted) > SEGMENT_BYTES // 2:
            wanted.pop()
        items = [NewMessage(item.body, properties=item.properties) for item in wanted]

        def put(durability: Durability) -> list[int]:
            return store.put_batch(topic, items, queue_id=queue_id, durability=durability).phy_offsets

        self._do(store, wanted, put)

    def _put_together(self, store: MessageStore) -> None:
        """Puts of one turn of an event loop, which wait for the disk together."""
        wanted = [
            self._message(store, *self._chance.choice(_PLAIN_QUEUES))
            for _ in range(self._chance.randint(2, 7))
        ]

        def put(_durability: Durability) -> list[int]:
            return [made.phy_offset for made in put_together(store, wanted)]

        self._do(store, wanted, put, Durability.SYNC)

    def _put_half(self, store: MessageStore) -> None:
        """A record of a transaction: half messages and rollbacks have no place in a queue."""
        flag = self._chance.choice(_TRANSACTION)
        self._append(store, self._message(store, *self._chance.choice(_PLAIN_QUEUES), flag))

    def _put_inner_batch(self, store: MessageStore) -> None:
        """One record that takes several offsets."""
        plain = self._message(store, _BATCH_TOPIC, 0)
        pieces = [
            BatchMessage(plain.body),
            *(BatchMessage(b"more") for _ in range(self._chance.randrange(3))),
        ]
        flag = INNER_BATCH | NEED_UNWRAP
        self._append(store, Wanted(_BATCH_TOPIC, 0, encode_batch(pieces), plain.properties, flag))

    def _append(self, store: MessageStore, wanted: Wanted) -> None:
        code = tags_code(wanted.properties.get(props.TAGS))
        raw = props.encode_properties(dict(wanted.properties))

        def put(durability: Durability) -> list[int]:
            made = store.append(
                wanted.topic,
                wanted.queue_id,
                wanted.body,
                raw,
                code,
                sys_flag=wanted.sys_flag,
                durability=durability,
            )
            return [made.phy_offset]

        self._do(store, [wanted], put)

    def _do(
        self,
        store: MessageStore,
        wanted: list[Wanted],
        put: Callable[[Durability], list[int]],
        durability: Durability | None = None,
    ) -> None:
        if durability is None:
            durability = Durability.SYNC if self._chance.random() < 0.25 else Durability.ASYNC
        shown = [
            (item.topic[:1], item.queue_id, item.properties[props.KEYS], len(item.body)) for item in wanted
        ]
        self._tell(f"put {durability.value} {shown}")
        end = store.max_phy_offset
        self._model.in_flight = wanted
        self._model.in_flight_at = (end, end - end % SEGMENT_BYTES + SEGMENT_BYTES)
        places = put(durability)
        self._model.in_flight = self._model.in_flight_at = ()
        for place, item in zip(places, wanted, strict=True):
            self._model.add(store.message_at(place), item)
        if durability is Durability.SYNC:
            self._model.make_certain()
        self._tell(f"  acknowledged at {places}")

    def _message(self, store: MessageStore, topic: str, queue_id: int, sys_flag: int = 0) -> Wanted:
        self._number += 1
        properties = {props.KEYS: f"k{self._number:08d}"}
        if self._chance.random() < 0.3:
            properties[props.TAGS] = self._chance.choice(("TagA", "Aa", "BB"))
        if self._chance.random() < 0.2:
            properties["P"] = str(self._number % 10) * self._chance.choice((20, 600, 1500))
        return Wanted(topic, queue_id, b"%08d" % self._number + self._filling(store), properties, sys_flag)

    def _filling(self, store: MessageStore) -> bytes:
        size = self._chance.choice(_BODY_BYTES)
        if self._chance.random() < 0.85:
            return self._chance.randbytes(size)
        # A record of another store, as one gets who mirrors it: valid, but not in its place.
        record = Record(
            topic=b"A",
            queue_offset=store.max_offset("A", 0) + 1,
            phy_offset=77 * SEGMENT_BYTES,
            store_timestamp_ms=self._clock.now_ms() + 5,
            body=b"of another store" * 20,
            record_crc=True,
        )
        return self._chance.randbytes(size % 1100) + record.pack()

    # ------------------------------------------------------------------------------------------ others

    def _flush(self, store: MessageStore) -> None:
        self._tell("flush")
        store.flush()
        self._model.make_certain()

    def _index(self, store: MessageStore) -> None:
        """Brings the index to the end of the log, as its thread would."""
        self._tell("index")
        store.query("A", "none")

    def _seal(self, store: MessageStore, files: CrashFiles) -> None:
        """Seals what is on the disk, as the sealing thread would."""
        certain = [kept.message for kept in self._model.log.values() if kept.is_certain]
        end = certain[-1].phy_offset if certain else 0
        self._tell(f"seal up to {end}")
        Sealer(files, STORE, self._clock, SEGMENT_BYTES, store.min_phy_offset, lambda: end).seal_due()

    def _save(self, files: CrashFiles) -> None:
        config = _config(files)
        config.load(_config_number)
        self._number += 1
        self._tell(f"save {self._number}")
        self._configs.add(self._number)
        config.save({"number": self._number, "filling": "x" * self._chance.choice((0, 700))})
        self._configs = {self._number}


def _config(files: CrashFiles) -> ConfigFile:
    return ConfigFile(files, _CONFIG, STORE / "seglog" / "evidence")


def _config_number(value: ConfigValue) -> int:
    number = value.get("number") if isinstance(value, dict) else None
    if not isinstance(number, int):
        raise CorruptError("config-shape", expected="a number", found=value)
    return number
