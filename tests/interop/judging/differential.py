"""The differential: the same random requests to our broker and to the real one, until two answers differ.

A sequence follows from its seed. Both brokers serve many sequences, each with topics and groups of its own;
after a difference they start over on empty directories, so that one failure is not the cause of the next.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.broker.tables.groups import group_to_config
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, refuse
from seglog.remoting.headers import SendMessageHeader
from seglog.remoting.peer import Peer
from seglog.storage.format.record.host import Host
from seglog.storage.format.record.message import decode_message_id
from tests.interop.judging.alike import Essence, essence
from tests.interop.judging.difference_cases import MESSAGE_BYTES, PULL_COUNT
from tests.interop.judging.differences import is_allowed
from tests.interop.judging.java_broker import JavaBroker
from tests.interop.judging.judge import Judge
from tests.interop.judging.questions import Geometry
from tests.interop.judging.sequences import CLIENTS, DELAY_LEVELS, Sequence, Step
from tests.interop.judging.wire import WireAnswer, decode_untyped, encode_answer, is_untyped
from tests.support.connections import QuietConnection

FULL_SEQUENCES: Final = 300
FULL_STEPS: Final = 600
GEOMETRY: Final = Geometry(16 << 20, 20_000, 500, 20_000)
SETTINGS: Final = {
    "brokerName": "broker-a",
    "rejectTransactionMessage": True,
    "enablePropertyFilter": True,
    "waitTimeMillsInSendQueue": 60_000,  # on a busy machine it refuses what waits 200 ms
}
STORE_SETTINGS: Final[dict[str, Any]] = {
    "timerWheelEnable": False,
    "messageDelayLevel": DELAY_LEVELS,
    "maxMessageSize": MESSAGE_BYTES,
    # The judge asks for more than a broker gives.
    "maxTransferCountOnMessageInMemory": PULL_COUNT,
    "maxTransferBytesOnMessageInMemory": 256 << 10,
    "accessMessageInMemoryMaxRatio": 40,
}


class DifferenceError(AssertionError):
    """The two brokers answered differently, or hold different things."""


PEERS: Final = {name: Peer(name, Host(b"\x7f\x00\x00\x01", 1), QuietConnection()) for name in CLIENTS}
"""The clients, as our broker knows them."""


def ask_ours(broker: Broker, request: Request, client: str = CLIENTS[0]) -> WireAnswer:
    """Returns our broker's answer as it would go out."""
    if is_untyped(request):
        request, error = decode_untyped(request)
        if error is not None:
            return encode_answer(request, refuse(ResponseCode.SYSTEM_ERROR, str(error)))
    return encode_answer(request, broker.dispatch(request, PEERS[client]))


def our_config(release: str) -> BrokerConfig:
    """Returns the settings of our broker, which are those that the real one has."""
    return BrokerConfig(
        delay_levels=DELAY_LEVELS,
        enable_property_filter=True,
        max_message_size_bytes=MESSAGE_BYTES,
        compatible_with=release,
    )


def open_ours(folder: Path, release: str) -> Broker:
    """Opens our broker, without ``__CRC32#`` as the real one by default: places are then the same."""
    return Broker.open(
        folder,
        segment_size_bytes=GEOMETRY.segment_size_bytes,
        queue_file_size_bytes=GEOMETRY.queue_file_size_bytes,
        record_crc=False,
        config=our_config(release),
    )


@dataclass(frozen=True, slots=True)
class Pair:
    """Two brokers that are asked the same."""

    ours: Broker
    theirs: JavaBroker

    def ask(self, step: Step, bases: tuple[int, int] = (0, 0)) -> tuple[Essence, Essence]:
        """Returns our answer and theirs; physical offsets are counted from two bases."""
        client, request = step
        return self.ask_each(request, request, bases, client)

    def ask_each(
        self, ours: Request, theirs: Request, bases: tuple[int, int], client: str = CLIENTS[0]
    ) -> tuple[Essence, Essence]:
        """Does the same for two requests that differ in what is counted from the bases."""
        return (
            essence(ours, ask_ours(self.ours, ours, client), bases[0]),
            essence(theirs, self.theirs.ask(theirs, client), bases[1]),
        )

    def bases(self, seed: int) -> tuple[int, int]:
        """Sends a message to each, and returns where it is stored: what follows is counted from there."""
        header = SendMessageHeader("pg", f"base{seed}", "TBW102", 1, 0, 0, 1, 0, b"UNIQ_KEY\x01base\x02")
        request = Request(RequestCode.SEND_MESSAGE_V2, header, b"x")
        ours, theirs = (
            decode_message_id(answer.ext["msgId"])[1]
            for answer in (ask_ours(self.ours, request), self.theirs.ask(request))
        )
        return ours, theirs

    def compare(self, seed: int, steps: int) -> None:
        """Asks both a sequence.

        Raises:
            DifferenceError: They differ in what no row of ``differences.py`` allows.
        """
        sequence = Sequence(seed, self.ours)
        bases = self.bases(seed)
        if bases[0] != bases[1]:
            raise DifferenceError(f"seed {seed}: what went before took {bases[0]} and {bases[1]} bytes")
        for number in range(steps):
            step = sequence.next()
            differing = differing_fields(step.request, *self.ask(step, bases))
            if differing:
                asked = (
                    f"{RequestCode(step.request.code).name}: {step.request.header} {step.request.body!r:.300}"
                )
                raise DifferenceError(
                    "\n".join((f"seed {seed}, step {number} of {step.client}, {asked}", *differing))
                )
        here, there = self._state_here(sequence), self._state_there(sequence)
        for table in here:
            if here[table] != there[table]:
                raise DifferenceError(
                    f"seed {seed}, after {steps} steps, {table}:\n{here[table]}\n<>\n{there[table]}"
                )
        for step in sequence.farewell():
            self.ask(step)

    def _state_here(self, sequence: Sequence) -> dict[str, Any]:
        """Returns the topics, groups and offsets of a sequence, as the config files would hold them."""
        offsets: dict[str, dict[int, int]] = {}
        for (group, topic, queue_id), offset in self.ours.offsets.all().items():
            if group in sequence.groups:
                offsets.setdefault(f"{topic}@{group}", {})[queue_id] = offset
        return {
            "topics": {
                name: dict(made.to_config())
                for name in sequence.own_topics()
                if (made := self.ours.topics.get(name)) is not None
            },
            "groups": {
                name: dict(group_to_config(settings))
                for name in sequence.groups
                if (settings := self.ours.groups.get(name)) is not None
            },
            "offsets": offsets,
        }

    def _state_there(self, sequence: Sequence) -> dict[str, Any]:
        return {
            "topics": _of(self.theirs.topics(), sequence.own_topics()),
            "groups": _of(self.theirs.groups(), sequence.groups),
            "offsets": {
                key: queues
                for key, queues in self.theirs.offsets().items()
                if key.rpartition("@")[2] in sequence.groups
            },
        }


class Differential:
    """Both brokers of one release, made when they are asked first.

    Args:
        release: Of RocketMQ.
        folder: For their directories.
        judge: One of that release; it does nothing else meanwhile.
    """

    def __init__(self, release: str, folder: Path, judge: Judge) -> None:
        self.release: Final = release
        self._folder = folder
        self._judge = judge
        self._numbers = itertools.count(1)
        self._brokers = ExitStack()
        self._pair: Pair | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.begin_anew()

    @property
    def pair(self) -> Pair:
        """The two brokers."""
        if self._pair is None:
            folder = self._folder / f"{self.release}-{next(self._numbers)}"
            theirs = self._judge.broker(folder / "theirs", GEOMETRY, settings=SETTINGS, **STORE_SETTINGS)
            self._pair = Pair(
                self._brokers.enter_context(open_ours(folder / "ours", self.release)),
                self._brokers.enter_context(theirs),
            )
        return self._pair

    def run(self, seed: int, steps: int) -> None:
        """Asks both a sequence; what it raises says how to repeat it, and both start over then."""
        is_alike = False
        try:
            with repeatable(self.release, seed, steps):
                self.pair.compare(seed, steps)
            is_alike = True
        finally:
            if not is_alike:
                self.begin_anew()

    def begin_anew(self) -> None:
        """Stops both; the next request meets brokers on empty directories."""
        self._pair = None
        self._brokers.close()


@contextlib.contextmanager
def repeatable(release: str, seed: int, steps: int) -> Iterator[None]:
    """Adds to an error the line that repeats it."""
    try:
        yield
    except Exception as error:
        error.add_note(f"to repeat: {command_of(release, seed, steps)}")
        raise


def command_of(release: str, seed: int, steps: int) -> str:
    """Returns the command that runs one sequence."""
    return f".venv/bin/python tools/broker-campaign --release {release} --seed {seed} --steps {steps}"


def seed_of(day: str, number: int) -> int:
    """Returns one of the seeds of a day."""
    return int.from_bytes(hashlib.sha256(f"{day} {number}".encode()).digest()[:4], "big")


def differing_fields(request: Request, ours: Essence, theirs: Essence) -> list[str]:
    """Returns what of two answers differs and may not."""
    return [
        f"{name}: {ours.get(name)!r} <> {theirs.get(name)!r}"
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name) and not is_allowed(name, request, ours, theirs)
    ]


def _of(table: dict[str, Any], names: list[str]) -> dict[str, Any]:
    return {name: table[name] for name in names if name in table}
