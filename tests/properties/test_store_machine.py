"""A store behaves like lists of messages, for any calls in any order, crashes included."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from typing_extensions import override

from seglog.storage.files.files import RealFiles
from seglog.storage.format.get_status import GetStatus
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.values import NewMessage
from tests.support import scale
from tests.support.material.stores import SEGMENT_BYTES, SMALL, SMALL_INDEX, new_clock
from tests.support.scale import scaled

IN_MEMORY = Path("/dev/shm")
PREPARED, COMMIT, ROLLBACK = 0x4, 0x8, 0xC

queues = st.tuples(st.sampled_from(["A", "B", "C" * 130]), st.integers(0, 1))
tags = st.sampled_from([None, "TagA", "Aa", "BB"])
bodies = st.binary(max_size=30) | st.integers(0, 900).map(bytes)
durabilities = st.sampled_from(Durability)
MOST_OF_A_BATCH = 12
"""Messages of a batch: with the longest topic, and bodies of 800 bytes, it fits into a file of the log."""


@dataclass(frozen=True)
class Kept:
    """A message as it must come back."""

    queue_offset: int
    body: bytes
    tags: str | None
    phy_offset: int
    store_timestamp_ms: int


@dataclass
class Model:
    """What the store must hold."""

    queues: dict[tuple[str, int], list[Kept]] = field(default_factory=dict)
    min_phy_offset: int = 0
    max_phy_offset: int = 0
    records: int = 0

    def low(self, queue: tuple[str, int]) -> int:
        """Returns the queue offset of the first message that has not expired."""
        kept = self.queues.get(queue, [])
        return next((m.queue_offset for m in kept if m.phy_offset >= self.min_phy_offset), len(kept))

    def get(
        self,
        queue: tuple[str, int],
        queue_offset: int,
        max_count: int,
        wanted: set[str] | None,
        units_per_file: int,
    ) -> tuple[GetStatus, int, list[Kept]]:
        """Returns status, next offset and messages of a read.

        A reader that found no queue file takes RocketMQ's default for their length, which shows in how far
        one read goes.
        """
        kept, low = self.queues.get(queue, []), self.low(queue)
        high = len(kept)
        if high == 0:
            return GetStatus.NO_MESSAGE_IN_QUEUE, 0, []
        if queue_offset < low:
            return GetStatus.OFFSET_TOO_SMALL, low, []
        if queue_offset >= high:
            status = (
                GetStatus.OFFSET_OVERFLOW_ONE if queue_offset == high else GetStatus.OFFSET_OVERFLOW_BADLY
            )
            return status, high, []
        end = min(high, (queue_offset // units_per_file + 1) * units_per_file)
        if wanted is None:
            end = min(end, queue_offset + max_count)
        matching = [m for m in kept[queue_offset:end] if wanted is None or m.tags in wanted]
        found = matching[:max_count]
        # A read stops before the first unit that may match and was not wanted any more: codes collide.
        colliding = wanted | {"Aa", "BB"} if wanted and wanted & {"Aa", "BB"} else wanted
        if len(found) == max_count and wanted is not None and colliding is not None:
            rest = (m.queue_offset for m in kept[found[-1].queue_offset + 1 : end] if m.tags in colliding)
            end = next(rest, end)
        return (GetStatus.FOUND if found else GetStatus.NO_MATCHED_MESSAGE), end, found


class StoreMachine(RuleBasedStateMachine):
    """Puts, reads, closes, kills and expires, and compares with the model."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None)
        self.clock = new_clock()
        self.model = Model()
        self.root = Path(self.folder.name) / "0"
        self.copies = 0
        self.reader: MessageStore | None = None

    @initialize(record_crc=st.booleans())
    def create(self, record_crc):
        self.record_crc = record_crc
        self.open()

    def open(self):
        self.store: MessageStore = MessageStore.open(
            self.root, clock=self.clock, record_crc=self.record_crc, **SMALL, **SMALL_INDEX
        )

    def close(self):
        self.store.close()
        if self.reader is not None:
            self.reader.close()
            self.reader = None

    def keep(self, queue, number, body, tag, put_offset, phy_offset):
        kept = self.model.queues.setdefault(queue, [])
        assert put_offset == len(kept)
        kept.append(Kept(put_offset, body, tag, phy_offset, self.clock.now_ms()))
        self.model.records += 1
        assert number == 0 or phy_offset >= self.model.max_phy_offset

    # ----------------------------------------------------------------------------------- writing

    @rule(queue=queues, body=bodies, tag=tags, durability=durabilities)
    def put(self, queue, body, tag, durability):
        topic, queue_id = queue
        put = self.store.put(topic, body, queue_id=queue_id, tags=tag, keys="k", durability=durability)
        assert put.phy_offset >= self.model.max_phy_offset
        self.keep(queue, 0, body, tag, put.queue_offset, put.phy_offset)
        self.model.max_phy_offset = put.phy_offset + put.size_bytes

    @rule(
        queue=queues,
        items=st.lists(st.tuples(bodies, tags), min_size=1, max_size=MOST_OF_A_BATCH),
        durability=durabilities,
    )
    def put_batch(self, queue, items, durability):
        items = items if sum(len(body) for body, _tag in items) < 800 else items[:1]
        topic, queue_id = queue
        messages = [NewMessage(body, tags=tag) for body, tag in items]
        batch = self.store.put_batch(topic, messages, queue_id=queue_id, durability=durability)
        assert batch.phy_offset // SEGMENT_BYTES == (batch.phy_offset + batch.size_bytes - 1) // SEGMENT_BYTES
        at = batch.phy_offset
        for number, (body, tag) in enumerate(items):
            self.keep(queue, number, body, tag, batch.queue_offset + number, at)
            at += self.store.message_at(at).size_bytes
        assert at == batch.phy_offset + batch.size_bytes
        self.model.max_phy_offset = at

    @rule(queue=queues, body=bodies, bits=st.sampled_from([PREPARED, COMMIT, ROLLBACK]))
    def append_transaction(self, queue, body, bits):
        topic, queue_id = queue
        put = self.store.append(topic, queue_id, body, b"", 0, sys_flag=bits)
        if bits == COMMIT:
            self.keep(queue, 0, body, None, put.queue_offset, put.phy_offset)
        else:
            assert put.queue_offset == 0
            self.model.records += 1
            assert self.store.message_at(put.phy_offset).body == body
        self.model.max_phy_offset = put.phy_offset + put.size_bytes

    @rule(step_ms=st.integers(0, 50) | st.just(10_000_000) | st.just(-1_000_000))
    def let_time_pass(self, step_ms):
        self.clock.advance(step_ms)

    @rule()
    def flush(self):
        self.store.flush()

    # ----------------------------------------------------------------------------------- reading

    def check_get(self, store, queue, offset, count, wanted):
        result = store.get(*queue, offset, count, wanted)
        names = None if wanted is None else {name.strip() for name in wanted.split("||")}
        status, next_offset, kept = self.model.get(queue, offset, count, names, store.geometry.units_per_file)
        assert (result.status, result.next_offset) == (status, next_offset)
        assert [self.as_kept(message) for message in result] == kept
        return next_offset

    @staticmethod
    def as_kept(message):
        return Kept(
            message.queue_offset, message.body, message.tags, message.phy_offset, message.store_timestamp_ms
        )

    @rule(
        queue=queues,
        offset=st.integers(-2, 60),
        count=st.integers(1, 40),
        wanted=st.sampled_from([None, "TagA", "BB", "Aa || TagA", "None"]),
    )
    def get(self, queue, offset, count, wanted):
        self.check_get(self.store, queue, offset, count, wanted)

    @rule(queue=queues, boundary=st.sampled_from(["lower", "upper"]), shift_ms=st.integers(-60, 60))
    def offset_by_time(self, queue, boundary, shift_ms):
        topic, queue_id = queue
        low = self.model.low(queue)
        times = [kept.store_timestamp_ms for kept in self.model.queues.get(queue, [])][low:]
        moment_ms = self.clock.now_ms() + shift_ms
        found = self.store.offset_by_time(topic, queue_id, moment_ms, boundary)
        if times != sorted(times):
            assert low <= found <= low + len(times)
        elif boundary == "lower":
            assert found == low + sum(time < moment_ms for time in times)
        else:
            assert found == max(low, low + sum(time <= moment_ms for time in times) - 1)

    @rule()
    def follow(self):
        """Reads everything through a reader that is kept open over many writes."""
        if self.reader is None:
            self.reader = MessageStore.open(self.root, read_only=True)
        self.reader.refresh()
        self.check_all(self.reader)

    # --------------------------------------------------------------------------- stops and starts

    def check_all(self, store):
        found = {(q.topic, q.queue_id): (q.min_offset, q.max_offset) for q in store.queues()}
        wanted = {queue: (self.model.low(queue), len(kept)) for queue, kept in self.model.queues.items()}
        assert {queue: limits for queue, limits in found.items() if limits[1]} == wanted
        for queue in self.model.queues:
            at = self.model.low(queue)
            while at < len(self.model.queues[queue]):
                at = self.check_get(store, queue, at, 32, None)

    @rule()
    def close_and_open(self):
        self.close()
        found = survey(self.root, RealFiles())
        assert (found.mode, found.findings) == ("normal", [])
        self.open()
        assert self.store.recovery.rewritten_queue_files == 0
        self.check_all(self.store)

    @rule(garbage=st.binary(max_size=80), lose=st.sampled_from(["nothing", "queues", "checkpoint", "index"]))
    def crash(self, garbage, lose):
        """Goes on with a copy of the directory as it is there while the store is open."""
        self.copies += 1
        copy = Path(self.folder.name) / str(self.copies)
        shutil.copytree(self.root, copy)
        self.close()
        shutil.rmtree(self.root)
        self.root = copy
        if lose == "queues" and not self.model.min_phy_offset:
            shutil.rmtree(copy / "consumequeue", ignore_errors=True)
        elif lose == "checkpoint":
            (copy / "checkpoint").unlink()
        elif lose == "index":
            shutil.rmtree(copy / "index", ignore_errors=True)
        self.tear(garbage)
        with MessageStore.open(copy, read_only=True) as reader:
            self.check_all(reader)
        self.open()
        assert self.store.recovery.mode == "abnormal"
        assert self.store.recovery.end_phy_offset == self.model.max_phy_offset
        self.check_all(self.store)

    def tear(self, garbage):
        """Leaves bytes of an unfinished write behind the end."""
        end = self.model.max_phy_offset
        segment = self.root / "commitlog" / f"{end - end % SEGMENT_BYTES:020d}"
        position = end % SEGMENT_BYTES
        if segment.exists() and position:
            with segment.open("r+b") as file:
                file.seek(position)
                file.write(garbage[: SEGMENT_BYTES - position])

    @precondition(lambda self: self.model.max_phy_offset > 2 * SEGMENT_BYTES)
    @rule(share=st.floats(0, 1))
    def expire(self, share):
        """Takes the oldest segments away, as retention does, but never the last."""
        self.close()
        files = sorted((self.root / "commitlog").iterdir())
        keep = max(1, len(files) - int(share * len(files)))
        for path in files[: len(files) - keep]:
            path.unlink()
        self.model.min_phy_offset = int(files[len(files) - keep].name)
        self.open()
        self.check_all(self.store)

    @invariant()
    def offsets_agree(self):
        assert self.store.max_phy_offset == max(self.model.max_phy_offset, self.store.min_phy_offset)
        for queue, kept in self.model.queues.items():
            assert self.store.max_offset(*queue) == len(kept)
            assert self.store.min_offset(*queue) == self.model.low(queue)

    @override
    def teardown(self):
        if hasattr(self, "store"):
            self.close()
            survey(self.root, RealFiles())
        self.folder.cleanup()


StoreMachine.TestCase.settings = settings(
    max_examples=scaled(100, 4000),
    stateful_step_count=60 if scale.is_full() else 25,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow],
)
TestStoreMachine = StoreMachine.TestCase


def test_a_long_run_of_random_puts_and_crashes_keeps_everything():
    """The same machine by hand, for as many messages as the search never has time for."""
    chance = scale.chance("a long run")
    machine = StoreMachine()
    machine.create(record_crc=True)
    names = [("A", 0), ("A", 1), ("B", 0)]
    for step in range(scaled(800, 20_000)):
        body = chance.randbytes(chance.randrange(200))
        machine.put(chance.choice(names), body, chance.choice([None, "TagA"]), Durability.ASYNC)
        if step % 60 == 59:
            machine.let_time_pass(1)
            stops = [machine.close_and_open, lambda: machine.crash(b"torn", "queues"), machine.follow]
            chance.choice(stops)()
    machine.check_all(machine.store)
    machine.teardown()
