"""The same random requests to our broker and to the real one: the same codes, offsets and messages.

A difference names the seed, the step and what was asked. What differs on purpose and is met on the way
stands in :data:`ON_PURPOSE`; what would lead the two apart is never asked, see ``sequences.py``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.broker.tables.groups import group_to_config
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.headers import PullMessageHeader, SendMessageHeader
from seglog.remoting.peer import Peer
from seglog.storage.format.record.host import Host
from seglog.storage.format.record.message import decode_message_id
from tests.interop.judging.alike import Essence, essence
from tests.interop.judging.java_broker import JavaBroker
from tests.interop.judging.judge import Judge
from tests.interop.judging.questions import Geometry
from tests.interop.judging.sequences import CLIENTS, DELAY_LEVELS, Sequence
from tests.interop.judging.wire import encode_answer
from tests.support.scale import repeatable, scaled, seed_of_the_day

pytestmark = pytest.mark.interop

SEQUENCES = scaled(12, 1_500)
JUDGED = (49, 62, 67, 74)
"""Seeds that showed differences once."""
OF_THE_DAY = scaled(6, 300)
STEPS = 200
GEOMETRY = Geometry(16 << 20, 20_000, 500, 20_000)
SENDS = (RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)


class Silent:
    """A connection that tells its client nothing; each is equal only to itself."""

    def notify(self, request: Request) -> None:
        """Drops it."""


PEERS = {name: Peer(name, Host(b"\x7f\x00\x00\x01", 1), Silent()) for name in CLIENTS}


@dataclass(frozen=True)
class OnPurpose:
    """One difference that is meant.

    Attributes:
        field: What differs.
        why: The reason.
        holds: Whether this is such a case: of the request, our answer and theirs.
    """

    field: str
    why: str
    holds: Callable[[Request, Essence, Essence], bool]


ON_PURPOSE = (
    OnPurpose(
        "remark",
        "what is too long, and how long it may be, is said; RocketMQ has one sentence for all",
        lambda request, ours, _theirs: request.code in SENDS and ours["code"] == ResponseCode.MESSAGE_ILLEGAL,
    ),
    OnPurpose(
        "remark",
        "a pull of a queue that is not there names the group where RocketMQ has the client's address",
        lambda request, ours, _theirs: (
            request.code == RequestCode.PULL_MESSAGE and ours["code"] == ResponseCode.INVALID_PARAMETER
        ),
    ),
    OnPurpose(
        "nextBeginOffset",
        "a full answer also steps over what does not match behind its last message",
        lambda request, ours, theirs: (
            isinstance(request.header, PullMessageHeader)
            and request.header.subscription not in (None, "", "*")
            and ours["code"] == ResponseCode.SUCCESS
            and len(ours["messages"]) == request.header.max_msg_nums
            and int(ours["nextBeginOffset"]) > int(theirs["nextBeginOffset"])
        ),
    ),
)


@pytest.fixture(scope="module")
def brokers(judge: Judge, tmp_path_factory):
    """Ours and the real one, each on its own empty directory."""
    folder = tmp_path_factory.mktemp("alike")
    settings = {"brokerName": "broker-a", "rejectTransactionMessage": True, "enablePropertyFilter": True}
    config: dict[str, Any] = {"timerWheelEnable": False, "messageDelayLevel": DELAY_LEVELS}
    # Ours writes no __CRC32# here, as the real one by default: physical offsets are then the same.
    with (
        judge.broker(folder / "theirs", GEOMETRY, settings=settings, **config) as theirs,
        Broker.open(
            folder / "ours",
            segment_size_bytes=GEOMETRY.segment_size_bytes,
            queue_file_size_bytes=GEOMETRY.queue_file_size_bytes,
            record_crc=False,
            config=BrokerConfig(delay_levels=DELAY_LEVELS),
        ) as ours,
    ):
        yield ours, theirs


def _of_the_day(number):
    return int.from_bytes(hashlib.sha256(f"{seed_of_the_day()} {number}".encode()).digest()[:4], "big")


@pytest.mark.parametrize("seed", [*range(1, SEQUENCES + 1), *JUDGED])
def test_random_requests_are_answered_alike(brokers, seed):
    ours, theirs = brokers
    _compare(ours, theirs, seed)


@pytest.mark.parametrize("number", range(OF_THE_DAY))
def test_random_requests_of_the_day_are_answered_alike(brokers, number):
    ours, theirs = brokers
    with repeatable(seed_of_the_day()):
        _compare(ours, theirs, _of_the_day(number))


def _compare(ours, theirs, seed):
    sequence = Sequence(seed, ours)
    base, their_base = (
        _end_of_log(ask, seed) for ask in (lambda r: encode_answer(r, ours.dispatch(r)), theirs.ask)
    )
    assert base == their_base, "what went before took the same room"
    for step in range(STEPS):
        client, request = sequence.next()
        answer = essence(request, encode_answer(request, ours.dispatch(request, PEERS[client])), base)
        expected = essence(request, theirs.ask(request, client), their_base)
        differing = [
            name
            for name in sorted(answer.keys() | expected.keys())
            if answer.get(name) != expected.get(name) and not _is_on_purpose(name, request, answer, expected)
        ]
        assert not differing, f"seed {seed}, step {step}, {request.code}: {request.header}\n" + "\n".join(
            f"{name}: {answer.get(name)!r} <> {expected.get(name)!r}" for name in differing
        )
    assert _state_here(ours, sequence) == _state_there(theirs, sequence)


def _is_on_purpose(name: str, request: Request, answer: Essence, expected: Essence) -> bool:
    if answer.keys() != expected.keys():
        return False
    return any(each.field == name and each.holds(request, answer, expected) for each in ON_PURPOSE)


def _end_of_log(ask, seed):
    """Sends a message, and returns where it lies: what follows is counted from there."""
    header = SendMessageHeader("pg", f"base{seed}", "TBW102", 1, 0, 0, 1, 0, b"UNIQ_KEY\x01base\x02")
    return decode_message_id(ask(Request(RequestCode.SEND_MESSAGE_V2, header, b"x")).ext["msgId"])[1]


def _state_here(broker: Broker, sequence: Sequence) -> dict[str, Any]:
    """Returns the topics, groups and offsets of a sequence, as the config files would hold them."""
    offsets: dict[str, dict[int, int]] = {}
    for (group, topic, queue_id), offset in broker.offsets.all().items():
        if group in sequence.groups:
            offsets.setdefault(f"{topic}@{group}", {})[queue_id] = offset
    return {
        "topics": {
            name: dict(made.to_config())
            for name in sequence.own_topics()
            if (made := broker.topics.get(name)) is not None
        },
        "groups": {
            name: dict(group_to_config(settings))
            for name in sequence.groups
            if (settings := broker.groups.get(name)) is not None
        },
        "offsets": offsets,
    }


def _state_there(broker: JavaBroker, sequence: Sequence) -> dict[str, Any]:
    return {
        "topics": _of(broker.topics(), sequence.own_topics()),
        "groups": _of(broker.groups(), sequence.groups),
        "offsets": {
            key: queues
            for key, queues in broker.offsets().items()
            if key.rpartition("@")[2] in sequence.groups
        },
    }


def _of(table: dict[str, Any], names: list[str]) -> dict[str, Any]:
    return {name: table[name] for name in names if name in table}
