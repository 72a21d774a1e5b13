"""Random lives of a store, with a strict and a lax stream that are killed and begun again.

Every message that was ever stored is given to each stream once, or was dropped by a compaction before the
stream read it, or is named as lost.
"""

from __future__ import annotations

import logging
import random
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from typing_extensions import override

from seglog import MessageStore
from seglog.clock import VirtualClock
from seglog.errors import CorruptError, SeglogError
from seglog.spark.compact.compact import Compaction
from seglog.spark.compact.policy import Policy
from seglog.spark.compact.swap import discard_old, files_around
from seglog.spark.source.stream.stream_offset import by_key
from seglog.storage.files.files import RealFiles
from seglog.storage.format.index.index import IndexGeometry
from tests.support.local_runner import LocalRunner
from tests.support.material.stores import served
from tests.support.streams import Stream

SIZES: Final[dict[str, Any]] = {
    "segment_size_bytes": 8192,
    "queue_file_size_bytes": 400,
    "index_geometry": IndexGeometry(50, 200),
}
TOPICS: Final = ("A", "B")
BEGIN_MS: Final = 1_800_000_000_000
_NAMED: Final = re.compile(r"\b([AB])/(\d+) (\d+)(?:\.\.(\d+))?")

Place = tuple[str, int, int]


@dataclass
class Reader:
    """A stream, and what it was given and told.

    Attributes:
        given: How often each message was given.
        named: Messages that were named as lost, by their bodies.
        excused: Messages that it need not be given: it was not told of them before they went without a trace.
    """

    stream: Stream
    is_strict: bool
    given: Counter[bytes] = field(default_factory=Counter)
    named: set[bytes] = field(default_factory=set)
    excused: set[bytes] = field(default_factory=set)
    pending: Any = None


class Life:
    """A life of one store.

    Args:
        root: A folder of its own.
        seed: Decides everything.

    Attributes:
        is_harmless: Whether nothing happens that a stream may call a loss.
    """

    def __init__(self, root: Path, seed: int | str) -> None:
        self.rng = random.Random(seed)
        self.is_harmless = self.rng.random() < 0.3
        self.root = root
        self.store = root / "store"
        self.clock = VirtualClock(BEGIN_MS)
        self.count = 0
        self.now: dict[Place, bytes] = {}
        self.ever: dict[bytes, Place] = {}
        self.returned: set[bytes] = set()
        self.copies: list[tuple[Path, dict[Place, bytes]]] = []
        self.writer: MessageStore | None = None
        self.told: list[str] = []
        self._named_by: Reader | None = None
        self.readers: list[Reader] = []
        self.append()
        walked = self.rng.choice([0, 5000, None])
        self.readers = [
            Reader(
                Stream(
                    self.store,
                    starting="earliest",
                    fail_on_data_loss=strict,
                    max_partition_bytes=self.rng.choice([1024, 5000, 1 << 20]),
                    walked_bytes=walked,
                ),
                strict,
            )
            for strict in (True, False)
        ]

    def run(self, events: int) -> None:
        """Lives, and lets both streams come to the end."""
        with self._listening():
            for _ in range(events):
                self._event()
                for reader in self.readers:
                    if self.rng.random() < 0.6:
                        self.poll(reader)
            self.close()
            for reader in self.readers:
                for _ in range(60):
                    before = reader.stream.at, reader.pending
                    self.poll(reader, kills=False)
                    if (reader.stream.at, reader.pending) == before:
                        break
                else:
                    raise AssertionError("a stream does not come to an end")

    def assert_accounted(self) -> None:
        """Asserts that no message was given twice, and that all are given or named."""
        for reader in self.readers:
            kind = "strict" if reader.is_strict else "lax"
            twice = {body for body, times in reader.given.items() if times > 1} - self.returned
            assert not twice, ("twice", kind, sorted(self.ever[body] for body in twice), self.told)
            known = reader.given.keys() | reader.named | reader.excused
            silent = sorted(self.ever[body] for body in self.ever.keys() - known)
            assert not silent, ("silent", kind, silent, self.told)

    def close(self) -> None:
        """Closes the writer, if one is at work."""
        if self.writer is not None:
            self.writer.close()
            self.writer = None

    def _event(self) -> None:
        self.clock.advance(self.rng.randrange(1, 5000))
        events = [
            self.append,
            self.roll,
            self.retain,
            self.lose_tail,
            self.keep_copy,
            self.roll_back,
            self.compact,
        ]
        harms = 0 if self.is_harmless else 2
        event = self.rng.choices(events, [8, 3, harms, harms, 3, harms, 3])[0]
        self.told.append(event.__name__)
        event()

    def append(self, most: int = 30) -> None:
        """Stores some messages; the writer may go on."""
        if self.writer is None:
            self.writer = MessageStore.open(self.store, clock=self.clock, **SIZES)
            self._see()
        for _ in range(self.rng.randrange(1, most)):
            self.count += 1
            body = b"m%d " % self.count + bytes(self.rng.randrange(300))
            topic, queue_id = self.rng.choice(TOPICS), self.rng.randrange(2)
            put = self.writer.put(topic, body, queue_id=queue_id, keys=f"k{self.rng.randrange(9)}")
            place = topic, queue_id, put.queue_offset
            self.now[place] = self._name(body)
            self.ever[self._name(body)] = place
            self.clock.advance(self.rng.randrange(3))
        if self.rng.random() < 0.6:
            self.close()

    def roll(self) -> None:
        """Stores more than a log file holds."""
        self.append(120)

    def retain(self) -> None:
        """Removes log files from the front, as retention does."""
        self.close()
        log_files = sorted((self.store / "commitlog").iterdir())
        for path in log_files[: self.rng.randrange(len(log_files))]:
            path.unlink()
        self._see()

    def lose_tail(self) -> None:
        """Takes the end of the log, as a power cut does; the queues know what was there."""
        self.close()
        with MessageStore.open(self.store, read_only=True) as store:
            messages = [one for found in served(store).values() for one in found]
        if not messages:
            return
        messages.sort(key=lambda one: one.phy_offset)
        cut = messages[max(0, len(messages) - self.rng.randrange(1, 12))]
        if cut.phy_offset == messages[0].phy_offset:
            return
        segment = SIZES["segment_size_bytes"]
        first = cut.phy_offset - cut.phy_offset % segment
        for path in (self.store / "commitlog").iterdir():
            if int(path.name) > first or (int(path.name) == first == cut.phy_offset):
                path.unlink()
            elif int(path.name) == first:
                data = path.read_bytes()
                path.write_bytes(data[: cut.phy_offset - first].ljust(segment, b"\0"))
        (self.store / "abort").write_text("1")
        self._see()
        if self.rng.random() < 0.5:
            self.append()

    def keep_copy(self) -> None:
        """Copies the store."""
        self.close()
        target = self.root / f"copy{len(self.copies)}"
        shutil.copytree(self.store, target)
        self.copies.append((target, dict(self.now)))

    def roll_back(self) -> None:
        """Puts a copy in the store's place, and possibly writes on."""
        if not self.copies:
            return
        self.close()
        target, _had = self.rng.choice(self.copies)
        shutil.rmtree(self.store)
        shutil.copytree(target, self.store)
        self._see()
        gone = self.ever.keys() - set(self.now.values())
        for reader in self.readers:
            # What it did not read went without a trace: nothing in the store shows that it ever was.
            reader.excused |= {body for body in gone if not reader.given[body]}
        if self.rng.random() < 0.7:
            self.clock.advance(10)
            self.append()

    def compact(self) -> None:
        """Compacts the store, if it is in order."""
        self.close()
        policies = {
            topic: Policy(compact=self.rng.random() < 0.6, retention_bytes=self.rng.choice([None, 0, 3000]))
            for topic in TOPICS
            if self.rng.random() < 0.8 and any(place[0] == topic for place in self.now)
        }
        job = Compaction(
            self.store,
            policies,
            runner=LocalRunner(RealFiles()),
            split_bytes=3000,
            clock=VirtualClock(self.clock.now_ms() + 1),
        )
        try:
            done = job.apply()
        except SeglogError as refused:
            self.told[-1] += f": {refused}"[:60]
            return
        if done.is_done:
            discard_old(files_around(self.store.resolve()), self.store.resolve())
        dropped = set(self._see().values())
        if not self.is_harmless:
            # What was lost before, and no stream has met yet, goes with the rest: its slot is a placeholder.
            there = set(self.now.values())
            dropped |= {
                body for body, place in self.ever.items() if body not in there and place[0] in policies
            }
        for reader in self.readers:
            reader.excused |= dropped

    def poll(self, reader: Reader, *, kills: bool = True) -> None:
        """Lets a stream take a batch; it may be killed at any moment of it."""
        try:
            self._batch(reader, reader.stream, kills=kills)
        except CorruptError as error:
            if self.is_harmless or not reader.is_strict:
                raise AssertionError(f"a loss that is none: {error}; {self.told}") from error
            self._name_lost(reader, str(error))
            self._pass_over(reader)

    def _pass_over(self, reader: Reader) -> None:
        """Goes on over a loss for one batch, as its operator does, and is strict again."""
        lax = Stream(self.store, starting="earliest", fail_on_data_loss=False)
        lax.at = reader.stream.at
        self._batch(reader, lax, kills=False)
        reader.stream.at = lax.at
        reader.stream.restart()

    def _batch(self, reader: Reader, stream: Stream, *, kills: bool) -> None:
        def is_killed() -> bool:
            if kills and self.rng.random() < 0.15:
                stream.restart()
                return True
            return False

        self._named_by = reader
        if kills and self.rng.random() < 0.3:
            stream.restart()
        if reader.pending is None:
            reader.pending = stream.planned(self.rng.choice([None, None, 1, 7, 40]))
            if is_killed():
                return
        rows = stream.rows(stream.at, reader.pending)
        if is_killed():
            return
        stream.done(reader.pending)
        reader.pending = None
        reader.given.update(self._name(row["body"]) for row in rows)

    def _name_lost(self, reader: Reader, text: str) -> None:
        """Takes down the messages that a text names; one that is there cannot be lost."""
        places, there = named_in(text), set(self.now.values())
        reader.named |= {body for body, place in self.ever.items() if place in places} - there

    def _served(self) -> dict[Place, bytes]:
        with MessageStore.open(self.store, read_only=True) as store:
            return {
                (*key, one.queue_offset): self._name(one.body)
                for key, found in served(store).items()
                for one in found
                if one.body.startswith(b"m")
            }

    def _see(self) -> dict[Place, bytes]:
        """Takes up what the store has now; returns what it had before and has not any more."""
        before, self.now = self.now, self._served()
        there = set(self.now.values())
        gone = {place: body for place, body in before.items() if body not in there}
        for reader in self.readers:
            # Written after a rollback under offsets that it had read, and gone before it looked: no trace.
            floors = by_key((reader.pending or reader.stream.at)[str(self.store)]["queues"])
            reader.excused |= {
                body
                for (topic, queue_id, offset), body in gone.items()
                if offset < floors.get((topic, queue_id), 0) and not reader.given[body]
            }
        # A message that was lost, and that a copy brought back, may be given again.
        self.returned |= set(self.now.values()) - set(before.values())
        return {place: body for place, body in before.items() if self.now.get(place) != body}

    @staticmethod
    def _name(body: bytes) -> bytes:
        return body.split(b" ")[0]

    @contextmanager
    def _listening(self) -> Iterator[None]:
        """Takes down which losses streams warn of."""
        life = self

        class Handler(logging.Handler):
            @override
            def emit(self, record: logging.LogRecord) -> None:
                if life._named_by is not None:
                    life._name_lost(life._named_by, record.getMessage())

        log, handler = logging.getLogger("seglog.spark.source.read.losses"), Handler()
        log.addHandler(handler)
        was, log.propagate = log.propagate, False
        try:
            yield
        finally:
            log.propagate = was
            log.removeHandler(handler)


def named_in(text: str) -> set[Place]:
    """Returns the messages that a text names as lost."""
    found: set[Place] = set()
    for topic, queue_id, first, last in _NAMED.findall(text):
        offsets = range(int(first), int(last or first) + 1)
        found |= {(topic, int(queue_id), offset) for offset in offsets}
    return found
