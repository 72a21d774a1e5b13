"""Sends messages that a listener failed at back to the broker, which delivers them again later.

The broker is asked to take the message from its own log. If it cannot, because the record is deleted or
another broker has its address now, the message is sent again to the group's retry topic, as an ordinary
producer would. Either way the retry has one failure more and the same id.

Source: ``DefaultMQPushConsumerImpl.java sendMessageBack, sendMessageBackAsNormalMessage``,
``ConsumeMessageOrderlyService.java sendMessageBack``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from seglog.client.client import Client
from seglog.client.links import level_of
from seglog.consumer.brokers import Brokers, check
from seglog.errors import SeglogError
from seglog.logs import logger
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request
from seglog.remoting.headers import SendBackHeader, SendMessageHeader
from seglog.storage.format.names import DLQ_PREFIX, RETRY_PREFIX
from seglog.storage.format.record import Message
from seglog.storage.format.record import properties as props
from seglog.storage.format.record import sys_flag as flags
from seglog.storage.format.system_names import AUTO_CREATE_TOPIC

PRODUCER_GROUP: Final = "CLIENT_INNER_PRODUCER"
FIRST_LEVEL: Final = 3
ENDLESS: Final = 0x7FFF_FFFF
_OF_ONE_RECORD: Final = frozenset({props.CRC32, "TRAN_MSG", props.MIN_OFFSET, props.MAX_OFFSET})
_ROOM_BYTES: Final = 256
"""Properties that a broker may add to a send: its region and cluster, and the record's CRC."""

_log = logger(__name__)


class SendBack:
    """Sends messages of one group back. Its flows run on the client's home.

    Args:
        client: Its routes, clock and link are used.
        group: The consumer group.
        max_reconsume_times: Failures after which a message is a dead letter; None for the group's own number.
    """

    def __init__(self, client: Client, group: str, max_reconsume_times: int | None = None) -> None:
        self._client = client
        self._brokers = Brokers(client)
        self._group = group
        self._max_reconsume_times = max_reconsume_times

    async def retry_later(
        self, message: Message, broker_name: str, delay_level: int = 0, *, is_said: bool = False
    ) -> None:
        """Requests a retry of a message.

        Args:
            message: As it was pulled.
            broker_name: The broker that has it.
            delay_level: The delay level; 0 for a delay that grows with each failure, below 0 for a dead
                letter now.
            is_said: Whether it was logged already that the broker does not take it back.

        Raises:
            SeglogError: The message could be neither sent back nor sent again.
        """
        found = props.decode_properties(message.properties_raw)  # a listener may have changed its dict
        header = SendBackHeader(
            message.phy_offset,
            self._group,
            delay_level,
            found.get(props.UNIQ_KEY) or message.message_id,
            message.topic,
            max_reconsume_times=self._max_reconsume_times,
        )
        try:
            await self._brokers.order(broker_name, Request(RequestCode.CONSUMER_SEND_MSG_BACK, header))
        except SeglogError as error:
            level = logging.DEBUG if is_said else level_of(error)
            _log.log(level, "message %s is sent again: %s", message.message_id, error)
            await self._send_anew(message, message.reconsume_times + 1, found)

    async def send_anew(self, message: Message, failures: int) -> None:
        """Sends a message to the retry topic as a new one.

        Args:
            message: As it was pulled.
            failures: The number of its failures.

        Raises:
            SeglogError: The broker refuses, or there is no answer.
        """
        await self._send_anew(message, failures, props.decode_properties(message.properties_raw))

    async def _send_anew(self, message: Message, failures: int, stored: Mapping[str, str]) -> None:
        most = ENDLESS if self._max_reconsume_times is None else self._max_reconsume_times
        found = _own(stored)
        found.setdefault(props.ORIGIN_MESSAGE_ID, found.get(props.UNIQ_KEY) or message.message_id)
        found.setdefault(props.RETRY_TOPIC, message.topic)
        found |= {
            props.RECONSUME_TIME: str(failures),
            props.MAX_RECONSUME_TIMES: str(most),
            props.DELAY: str(FIRST_LEVEL + message.reconsume_times),
        }
        await self._send(f"{RETRY_PREFIX}{self._group}", message, found, failures)

    async def end_as_it_is(self, message: Message) -> None:
        """Sends a message to the dead letters with only its own properties, if those of a retry do not fit.

        Args:
            message: The pulled message, with its failures.

        Raises:
            SeglogError: The broker refuses, or there is no answer.
        """
        found = _own(props.decode_properties(message.properties_raw))
        origin = {props.RETRY_TOPIC: message.topic}
        if len(props.encode_properties(found | origin)) <= props.MAX_PROPERTIES_BYTES - _ROOM_BYTES:
            found |= origin
        await self._send(f"{DLQ_PREFIX}{self._group}", message, found, message.reconsume_times)

    async def _send(self, topic: str, message: Message, found: Mapping[str, str], failures: int) -> None:
        queue = (await self._client.routes.ask_to_publish(topic))[0]
        header = SendMessageHeader(
            PRODUCER_GROUP,
            topic,
            AUTO_CREATE_TOPIC,
            1,
            queue.queue_id,
            message.sys_flag & (flags.COMPRESSED | flags.COMPRESSION_MASK),
            self._client.clock.now_ms(),
            message.flag,
            props.encode_properties(found),
            failures,
            max_reconsume_times=self._max_reconsume_times,
            broker_name=queue.broker_name,
        )
        sent = Request(RequestCode.SEND_MESSAGE_V2, header, message.body)
        check(await self._brokers.ask(queue.broker_name, sent))


def _own(stored: Mapping[str, str]) -> dict[str, str]:
    """Returns the properties to copy."""
    return {name: value for name, value in stored.items() if name not in _OF_ONE_RECORD}
