"""A message that is sent back is stored, or refused, as a send of it with the same properties would be.

Only a batch stores members with any system properties: no broker looks at them there. What a consumer then
sends back has met no check before.
"""

from __future__ import annotations

from typing import Any

import pytest

from seglog.remoting.bodies import BatchMessage, MessageBatch
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.headers import SendMessageHeader
from seglog.storage.format.record.properties import encode_properties
from tests.support.brokers import open_broker, send, send_back
from tests.support.rows import every_row
from tests.support.scale import chance, scaled

TIMES = ("", "0", "-1", "5", "5000", "1700000005000", "x")
LEVELS = ("", "-1", "0", "1", "3", "18", "1000", "x")
VALUES = {
    "TIMER_DELAY_SEC": TIMES,
    "TIMER_DELAY_MS": TIMES,
    "TIMER_DELIVER_MS": TIMES,
    "DELAY": LEVELS,
    "WAIT": ("true", "false"),
    "TAGS": ("TagA",),
    "RETRY_TOPIC": ("Elsewhere",),
    "ORIGIN_MESSAGE_ID": ("", " ", "A" * 32),
    "REAL_TOPIC": ("Elsewhere",),
    "REAL_QID": ("3",),
    "TIMER_OUT_MS": TIMES,
    "MIN_OFFSET": ("1",),
    "CLUSTER": ("mine",),
    "MAX_RECONSUME_TIMES": ("0", "16"),
    "mine": ("own",),
}
"""System properties, with values that mean something, nothing or are wrong."""
OF_SENDS = {"__CRC32#", "UNIQ_KEY", "CLUSTER", "MSG_REGION", "TRACE_ON"}
"""What a broker adds to what it is sent."""
LEVEL_OF_FIRST_RETRY = 3


def drawn(dice) -> dict[str, str]:
    names = dice.sample(sorted(VALUES), dice.randrange(1, 5))
    return {name: dice.choice(VALUES[name]) for name in names}


def stored_last(broker) -> Any:
    """Returns what is stored of the last message, but its times and what a broker adds to a send."""
    ends = [(queue.max_phy_offset, queue) for queue in broker.store.queues()]
    _end, queue = max(ends, key=lambda end: end[0])
    message = broker.store.get(queue.topic, queue.queue_id, queue.max_offset - 1).messages[-1]
    properties = {name: value for name, value in message.properties.items() if name not in OF_SENDS}
    return queue.topic, queue.queue_id, message.body, message.reconsume_times, properties


def as_send(broker, message, topic, level):
    """Sends a message as a consumer that puts it in its retry topic itself does."""
    properties = {name: value for name, value in message.properties.items() if name != "__CRC32#"}
    properties.setdefault("RETRY_TOPIC", message.topic)
    if not properties.get("ORIGIN_MESSAGE_ID", "").strip():
        properties["ORIGIN_MESSAGE_ID"] = message.message_id
    properties |= {"WAIT": "false", "DELAY": str(level)}
    raw = encode_properties(properties)
    header = SendMessageHeader("pg", topic, "TBW102", 1, 0, 0, 1_234, 0, raw, message.reconsume_times + 1)
    return broker.dispatch(Request(RequestCode.SEND_MESSAGE_V2, header, message.body))


@pytest.mark.parametrize("is_dead", [False, True], ids=["retry", "dead letter"])
def test_a_member_of_a_batch_is_taken_back_as_a_send_of_it_would_be(tmp_path, is_dead):
    dice = chance("retries as sends", is_dead)
    topic = "%DLQ%cg" if is_dead else "%RETRY%cg"
    with open_broker(tmp_path) as broker, every_row() as row:
        assert send(broker, "T").code is ResponseCode.SUCCESS
        assert send_back(broker, 0, -1 if is_dead else 0).code is ResponseCode.SUCCESS  # the topic is there
        for _message in range(scaled(400, 20_000)):
            properties = drawn(dice)
            batch = MessageBatch([BatchMessage(b"x", encode_properties(properties))])
            answer = send(broker, "T", batch, code=RequestCode.SEND_BATCH_MESSAGE)
            assert answer.code is ResponseCode.SUCCESS
            (message,) = broker.store.get("T", 0, broker.store.max_offset("T", 0) - 1).messages
            given = -1 if is_dead else dice.choice((0, 0, 1, 2, 18, 19, 1000))
            level = 0 if is_dead else given or LEVEL_OF_FIRST_RETRY
            with row(properties, given):
                before = broker.store.max_phy_offset
                wanted = as_send(broker, message, topic, level)
                expected = stored_last(broker) if wanted.code is ResponseCode.SUCCESS else None
                assert (expected is None) == (broker.store.max_phy_offset == before)
                before = broker.store.max_phy_offset
                found = send_back(broker, message.phy_offset, given)
                assert found.code is wanted.code, (found.remark, wanted.remark)
                assert (expected is None) == (broker.store.max_phy_offset == before)
                if expected is not None:
                    assert stored_last(broker) == expected
