"""Random requests to a broker, the same for the same seed: what clients and administrators do, and mistakes.

Names carry the seed, so one Java broker serves many sequences, each with topics and groups of its own.

Drawn is everything; what differs on purpose, with consequences for all that follows, is drawn and left out by
the rows of ``differences.py``. What a broker leaves to chance is not drawn: which of several queues a message
goes to, or comes back to. Nor are pulls that would wait.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from seglog.broker.broker import Broker
from seglog.remoting.bodies import BatchMessage, LockBatchBody, MessageBatch
from seglog.remoting.client_headers import (
    ConsumerGroupHeader,
    GroupForbiddenHeader,
    ProducerGroupHeader,
    UnregisterClientHeader,
)
from seglog.remoting.codes import PullFlag, RequestCode
from seglog.remoting.command import Request
from seglog.remoting.headers import (
    CloneGroupOffsetHeader,
    CreateTopicHeader,
    DeleteGroupHeader,
    GetMaxOffsetHeader,
    GetMinOffsetHeader,
    PullMessageHeader,
    QueryConsumerOffsetHeader,
    ResetOffsetHeader,
    SearchOffsetHeader,
    SendBackHeader,
    SendMessageHeader,
    UpdateConsumerOffsetHeader,
)
from seglog.remoting.heartbeat import ConsumerData, ConsumeType, HeartbeatBody, MessageModel
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.subscription import SubscriptionData
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.storage.format.config import ConfigValue
from seglog.storage.format.names import DLQ_PREFIX, RETRY_PREFIX
from seglog.storage.format.system_names import TOOLS_GROUP
from tests.interop.judging.difference_cases import MESSAGE_BYTES, NO_SQL
from tests.interop.judging.differences import is_left_out

BAD_TOPICS: Final = (
    "",
    " ",
    "a b",
    "Ü",
    "x" * 128,
    RETRY_PREFIX + "x" * 250,
    DLQ_PREFIX + "x" * 130,
    "SCHEDULE_TOPIC_XXXX",
    "SELF_TEST_TOPIC",
    "OFFSET_MOVED_EVENT",
)
BAD_GROUPS: Final = ("", "no group", "g" * 130, "g" * 256)
TAGS: Final = ("TagA", "TagB", "Aa", "BB")
SUBSCRIPTIONS: Final = ("*", "", "TagA", "TagA || TagB", "Aa", "none", "||", " ", None)
SQL_CONDITIONS: Final = ("TAGS = 'TagA'", "KEYS IS NOT NULL", "two > 1 OR TAGS IN ('TagB')", "", NO_SQL)
GROUP_ATTRIBUTES: Final[tuple[Mapping[str | int, ConfigValue], ...]] = (
    *[{}] * 4,
    {"+priority.factor": "50"},
    {"+priority.factor": "101"},
    {"-priority.factor": ""},
    {"priority.factor": "1"},
    {"+nonsense": "1"},
    {"+lite.bind.topic": "T"},
)
CLIENTS: Final = ("c1", "c2")
DELAY_LEVELS: Final = "1h 2h 3h"
"""Of both brokers: nothing comes due while a sequence runs."""
TIMES_MS: Final = (-1, 0, 1, 1 << 42)


class Step(NamedTuple):
    """One request, and which of :data:`CLIENTS` asks it."""

    client: str
    request: Request


class Sequence:
    """One random sequence.

    Args:
        seed: Everything follows from it and from what the broker holds.
        broker: Ours; pulls look at the ends of its queues.

    Attributes:
        topics: Those that its requests are about.
        groups: Likewise.
        left_out: How many requests were drawn and not asked, by the row of ``differences.py``.
    """

    def __init__(self, seed: int, broker: Broker) -> None:
        self._random = random.Random(seed)
        self._broker = broker
        self._name = f"d{seed:x}"
        self._count = 0
        self._client = CLIENTS[0]
        self._last_reset: tuple[str, str, int] | None = None
        self.left_out: Final[Counter[str]] = Counter()
        self.topics: Final = [f"{self._name}_t{number}" for number in range(4)]
        self.groups: Final = [f"{self._name}_g{number}" for number in range(3)]
        self._kinds: Final[dict[Callable[[], Request], int]] = {
            self._send: 30,
            self._send_batch: 6,
            self._send_retry: 6,
            self._pull: 20,
            self._commit: 8,
            self._query: 8,
            self._ends: 5,
            self._search: 4,
            self._lock: 5,
            self._reset: 4,
            self._create_topic: 3,
            self._create_group: 3,
            self._delete_group: 1,
            self._clone: 2,
            self._send_back: 5,
            self._heartbeat: 5,
            self._unregister: 2,
            self._ask_for_clients: 4,
            self._forbid: 4,
        }

    def own_topics(self) -> list[str]:
        """Returns the topics of the sequence with those of its groups."""
        return self.topics + [
            prefix + group for prefix in (RETRY_PREFIX, DLQ_PREFIX) for group in self.groups
        ]

    def next(self) -> Step:
        """Returns the next request and who asks."""
        while True:
            (make,) = self._random.choices(list(self._kinds), list(self._kinds.values()))
            self._client = self._random.choice(CLIENTS)
            request = make()
            row = is_left_out(request, self._broker)
            if row is None:
                return Step(self._client, request)
            self.left_out[row.name] += 1

    def farewell(self) -> Iterator[Step]:
        """Yields how its clients leave: RocketMQ closes the connection of one that was silent for long."""
        for self._client in CLIENTS:
            for group in self.groups:
                header = UnregisterClientHeader(self._client_id(), f"{self._name}_p", group)
                yield Step(self._client, Request(RequestCode.UNREGISTER_CLIENT, header))

    def _client_id(self) -> str:
        return f"{self._name}@{self._client}"

    def _often(self, usual: list[str], seldom: tuple[str, ...], percent: int = 7) -> str:
        return self._random.choice(seldom if self._random.randrange(100) < percent else usual)

    def _topic(self) -> str:
        return self._often(self.topics, BAD_TOPICS)

    def _any_topic(self) -> str:
        return self._often(self._random.choice((self.topics, self.own_topics())), BAD_TOPICS)

    def _group(self) -> str:
        return self._often(self.groups, BAD_GROUPS, 4)

    def _queue_id(self) -> int:
        return self._random.choice((0, 0, 0, 0, 1, 1, 1, 3, 7, 16, -1))

    def _offset(self, topic: str, queue_id: int) -> int:
        """Returns an offset at, around or far from the ends of a queue, or within."""
        if topic not in self.own_topics():  # what others stored there is not this sequence's to know
            return self._random.choice((0, -1, 1 << 30))
        low, high = (
            find(topic, queue_id) for find in (self._broker.store.min_offset, self._broker.store.max_offset)
        )
        return self._random.choice(
            (low, low - 1, low + 1, high, high + 1, high - 1, high + 100, (low + high) // 2)
        )

    def _properties(self, *, may_be_long: bool = False) -> bytes:
        self._count += 1
        pieces = [b"UNIQ_KEY\x01%s-%d" % (self._name.encode(), self._count)]
        choose = self._random.random
        if choose() < 0.6:
            pieces.append(b"TAGS\x01" + self._random.choice(TAGS).encode())
        if choose() < 0.3:
            pieces.append(b"KEYS\x01k%d k2" % self._count)
        if choose() < 0.1:
            pieces.append(b"WAIT\x01false")
        if choose() < 0.05:
            pieces.append(b"POP_CK\x01x")
        if choose() < 0.05:
            pieces.append(b"CLUSTER\x01mine")
        if choose() < 0.05:
            pieces.append("größe\x01ä".encode())
        if choose() < 0.05:
            pieces.append(b"two\x011\x012")
        if choose() < 0.02:
            pieces.append(self._random.choice((b"\x01no name", b"no value\x01", b"half")))
        if choose() < 0.05:
            pieces.append(self._random.choice((b"TIMER_DELAY_SEC\x015", b"TRAN_MSG\x01true")))
        if choose() < 0.15:
            level = self._random.choice((b"-1", b"0", b"1", b"2", b"3", b"4", b"1000", b"x"))
            pieces.append(b"DELAY\x01" + level)
        if may_be_long and choose() < 0.01:
            pieces.append(b"long\x01" + b"x" * self._random.choice((32_000, 40_000)))
        return b"\x02".join(pieces) + self._random.choice((b"\x02", b""))

    def _body(self) -> bytes:
        sizes = (1, 10, 100, 1_000, 5_000)
        seldom = (0, 0, 0, MESSAGE_BYTES, MESSAGE_BYTES + 1)
        return self._random.randbytes(self._random.choice(seldom if self._random.random() < 0.04 else sizes))

    def _send_header(self, topic: str, queue_id: int, properties: bytes, **more: object) -> SendMessageHeader:
        choose = self._random.choice
        return SendMessageHeader(
            "pg",
            topic,
            choose(("TBW102", "TBW102", "TBW102", "no model", self.topics[0])),
            choose((1, 2, 4, 4, 100, 0, -1)),
            queue_id,
            choose((0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 12)),
            1_234,
            choose((0, 0, 5, -1)),
            properties,
            **more,  # type: ignore[arg-type]
        )

    def _send(self) -> Request:
        topic, queue_id = self._topic(), self._queue_id()
        known = self._broker.topics.get(topic)
        if queue_id < 0 and (known is None or known.write_queue_nums > 1):
            queue_id = 0  # the broker would choose one at random
        header = self._send_header(topic, queue_id, self._properties(may_be_long=True))
        code = self._random.choice((RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2))
        return Request(code, header, self._body())

    def _send_batch(self) -> Request:
        messages = [
            BatchMessage(
                self._random.choice((b"", *[self._body()] * 9)),
                self._properties(),
                self._random.choice((0, 7)),
            )
            for _ in range(self._random.choice((0, 1, 2, 3, 4, 5)))
        ]
        topic = self._random.choice((*[self._topic()] * 5, RETRY_PREFIX + self._group()))
        header = self._send_header(
            topic,
            self._random.choice((0, 0, 0, 0, 1, 20)),
            self._random.choice((b"", b"", b"UNIQ_KEY\x01b\x02", b"WAIT\x01false\x02", b"DELAY\x012\x02")),
            is_batch=True,
        )
        return Request(RequestCode.SEND_BATCH_MESSAGE, header, MessageBatch(messages))

    def _send_retry(self) -> Request:
        header = self._send_header(
            RETRY_PREFIX + self._group(),
            0,
            self._properties(),
            reconsume_times=self._random.choice((0, 1, 15, 16, 17)),
            max_reconsume_times=self._random.choice((None, None, 0, 1, 16, -1)),
        )
        return Request(RequestCode.SEND_MESSAGE_V2, header, self._body())

    def _place(self) -> tuple[str, str, int]:
        """Returns a group, a topic and a queue; often those of the last reset."""
        place = self._group(), self._any_topic(), self._queue_id()
        return self._last_reset if self._last_reset and self._random.random() < 0.2 else place

    def _pull(self) -> Request:
        group, topic, queue_id = self._place()
        flags = PullFlag.SUBSCRIPTION
        if self._random.random() < 0.3:
            flags |= PullFlag.COMMIT_OFFSET
        suspended = self._random.choice((PullFlag(0), PullFlag.SUSPEND))
        offset = self._offset(topic, queue_id)
        if (
            self._broker.store.min_offset(topic, queue_id)
            <= offset
            < self._broker.store.max_offset(topic, queue_id)
        ):
            flags |= suspended  # elsewhere it would wait for seconds
        language = self._random.choice((None, "TAG", "TAG", "TAG", "SQL92", "JS"))
        header = PullMessageHeader(
            group,
            topic,
            queue_id,
            offset,
            self._random.choice((1, 2, 32, 32, 1_000, 0, -1)),
            int(flags),
            self._offset(topic, queue_id),
            0,
            self._random.choice((0, 1, 1 << 40)),
            self._random.choice(SUBSCRIPTIONS if language in (None, "TAG") else SQL_CONDITIONS),
            language,
            self._random.choice((None, None, None, -1, 1_000)),
        )
        return Request(RequestCode.PULL_MESSAGE, header)

    def _commit(self) -> Request:
        group, topic, queue_id = self._place()
        offset = self._offset(topic, queue_id)
        return Request(
            RequestCode.UPDATE_CONSUMER_OFFSET,
            UpdateConsumerOffsetHeader(group, topic, queue_id, offset),
        )

    def _query(self) -> Request:
        header = QueryConsumerOffsetHeader(*self._place(), self._random.choice((True, True, False)))
        return Request(RequestCode.QUERY_CONSUMER_OFFSET, header)

    def _ends(self) -> Request:
        topic, queue_id = self._any_topic(), self._queue_id()
        if self._random.random() < 0.5:
            return Request(RequestCode.GET_MAX_OFFSET, GetMaxOffsetHeader(topic, queue_id))
        return Request(RequestCode.GET_MIN_OFFSET, GetMinOffsetHeader(topic, queue_id))

    def _search(self) -> Request:
        boundary = self._random.choice((None, "lower", "upper", "LOWER", "middle"))
        header = SearchOffsetHeader(
            self._any_topic(), self._queue_id(), self._random.choice(TIMES_MS), boundary
        )
        return Request(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)

    def _lock(self) -> Request:
        queues = frozenset(
            MessageQueue(self._random.choice(self.topics), "broker-a", self._random.randrange(3))
            for _ in range(self._random.randint(0, 3))
        )
        # The first group locks seldom, or its retries would all be dead letters.
        group = self.groups[0] if self._random.random() < 0.1 else self._random.choice(self.groups[1:])
        code = self._random.choice(
            (RequestCode.LOCK_BATCH_MQ, RequestCode.LOCK_BATCH_MQ, RequestCode.UNLOCK_BATCH_MQ)
        )
        return Request(code, body=LockBatchBody(group, self._random.choice(CLIENTS), queues))

    def _reset(self) -> Request:
        group, topic, queue_id = self._last_reset = self._group(), self._any_topic(), self._queue_id()
        offsets = [self._offset(topic, queue_id) for _ in range(3)]
        header = ResetOffsetHeader(
            group,
            topic,
            self._random.choice(TIMES_MS),
            self._random.random() < 0.5,
            queue_id,
            self._random.choice((None, -1, *offsets)),
        )
        return Request(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)

    def _create_topic(self) -> Request:
        choose = self._random.choice
        header = CreateTopicHeader(
            self._often(self.topics, (*BAD_TOPICS, "TBW102", "rmq_sys_x"), 30),
            "TBW102",
            choose((1, 2, 4, 8, 1, 2, 4, 8, 0, -1)),
            choose((1, 2, 4, 8, 1, 2, 4, 8, 0, -1)),
            choose((6, 6, 6, 6, 4, 2, 7)),
            choose(("SINGLE_TAG", "MULTI_TAG")),
            choose((0, 0, 1)),
            choose((False, True)),
            choose(
                (
                    None,
                    None,
                    "",
                    "+message.type=NORMAL",
                    "-message.type",
                    "nonsense",
                    "+unknown=1",
                    "+message.type=BAD",
                    "+cleanup.policy=DELETE",
                    "+message.type",
                    "-message.type=NORMAL",
                    "+message.type=FIFO,+message.type=FIFO",
                    "+message.type=LITE",
                    "+reserve.time=-1",
                    "+reserve.time=-2",
                )
            ),
        )
        return Request(RequestCode.UPDATE_AND_CREATE_TOPIC, header)

    def _create_group(self) -> Request:
        choose = self._random.choice
        group = SubscriptionGroup(
            self._group(),
            is_consume_enabled=choose((True, True, True, False)),
            retry_queue_nums=choose((1, 1, 1, 0)),  # of several, the broker chooses one at random
            retry_max_times=choose((16, 3, 0)),
            is_broadcast_enabled=choose((True, False)),
            attributes=choose(GROUP_ATTRIBUTES),
        )
        return Request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=group)

    def _delete_group(self) -> Request:
        group = self._often([*self.groups, *self.groups, TOOLS_GROUP], BAD_GROUPS)
        header = DeleteGroupHeader(group, self._random.choice((False, True)))
        return Request(RequestCode.DELETE_SUBSCRIPTIONGROUP, header)

    def _clone(self) -> Request:
        header = CloneGroupOffsetHeader(
            self._random.choice(self.groups),
            self._random.choice(self.groups),
            self._random.choice((*self.topics, "no-such-topic", None)),
            self._random.random() < 0.5,
        )
        return Request(RequestCode.CLONE_GROUP_OFFSET, header)

    def _send_back(self) -> Request:
        """Returns a message that was consumed, or that never was, for another attempt."""
        queues = [(topic, queue_id) for topic in self.own_topics() for queue_id in (0, 1)]
        filled = [queue for queue in queues if self._broker.store.max_offset(*queue)]
        topic, queue_id = self._random.choice(filled or queues)
        found = self._broker.store.get(topic, queue_id, self._broker.store.min_offset(topic, queue_id), 32)
        places = [message.phy_offset for message in found.messages] or [self._broker.store.max_phy_offset]
        header = SendBackHeader(
            self._random.choice(places),
            self._group(),
            self._random.choice((0, 0, 1, 2, 9, -1)),
            origin_topic=topic,
            is_unit_mode=self._random.random() < 0.1,
            max_reconsume_times=self._random.choice((None, None, 16, 0, 3)),
        )
        return Request(RequestCode.CONSUMER_SEND_MSG_BACK, header)

    def _heartbeat(self) -> Request:
        consumers = tuple(
            ConsumerData(
                group,
                tuple(
                    SubscriptionData(topic, self._random.choice(("*", "TagA", "TagA || TagB")), version)
                    for topic in self._random.sample(self.topics, self._random.randint(1, 3))
                    for version in [self._random.choice((1, 2, 3))]
                ),
                self._random.choice(list(ConsumeType)[:2]),
                self._random.choice(list(MessageModel)),
                self._random.choice(("CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_FIRST_OFFSET")),
            )
            for group in self._random.sample(self.groups[:2], self._random.randint(0, 2))
        )
        producers = (f"{self._name}_p",) if self._random.random() < 0.5 else ()
        return Request(RequestCode.HEART_BEAT, body=HeartbeatBody(self._client_id(), producers, consumers))

    def _unregister(self) -> Request:
        header = UnregisterClientHeader(
            self._client_id(),
            self._random.choice((None, f"{self._name}_p")),
            self._random.choice((None, *self.groups, *BAD_GROUPS)),
        )
        return Request(RequestCode.UNREGISTER_CLIENT, header)

    def _ask_for_clients(self) -> Request:
        group = ConsumerGroupHeader(self._group())
        return self._random.choice(
            (
                Request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, group),
                Request(RequestCode.GET_CONSUMER_CONNECTION_LIST, group),
                Request(RequestCode.GET_PRODUCER_CONNECTION_LIST, ProducerGroupHeader(f"{self._name}_p")),
            )
        )

    def _forbid(self) -> Request:
        header = GroupForbiddenHeader(self._group(), self._topic(), self._random.choice((None, True, False)))
        return Request(RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN, header)
