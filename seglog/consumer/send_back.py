"""Gives messages that a listener could not process back to the broker, which tries them again later.

The broker is asked to take the message from its own log. If it cannot, because the record is gone or the
broker is another one meanwhile, the message is sent anew to the group's retry topic, as an ordinary producer
would. Either way the retry has one more failure and the same id.

Source: ``DefaultMQPushConsumerImpl.java sendMessageBack, sendMessageBackAsNormalMessage``,
``ConsumeMessageOrderlyService.java sendMessageBack``.
"""

from __future__ import annotations

import logging
from typing import Final

from seglog.client.links import Link
from seglog.client.routes import Routes
from seglog.clock import Clock
from seglog.errors import ProtocolError, RemoteProtocolError
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.headers import SendBackHeader, SendMessageHeader
from seglog.storage.format.names import RETRY_PREFIX
from seglog.storage.format.record import Message
from seglog.storage.format.record import properties as props
from seglog.storage.format.record import sys_flag as flags
from seglog.storage.format.system_names import AUTO_CREATE_TOPIC

PRODUCER_GROUP: Final = "CLIENT_INNER_PRODUCER"
FIRST_LEVEL: Final = 3
ENDLESS: Final = 0x7FFF_FFFF
_TRANSACTION: Final = "TRAN_MSG"

_log = logging.getLogger(__name__)


class SendBack:
    """Gives messages of one group back.

    Args:
        link: To the broker.
        group: Whose retry topic.
        clock: Stamps what is sent anew.
        max_reconsume_times: Failures after which a message is a dead letter; None for the group's own number.
    """

    def __init__(self, link: Link, group: str, clock: Clock, max_reconsume_times: int | None = None) -> None:
        self._link = link
        self._group = group
        self._clock = clock
        self._max_reconsume_times = max_reconsume_times
        self._routes = Routes(link, clock)

    def retry_later(self, message: Message, delay_level: int = 0) -> None:
        """Has a message tried again.

        Args:
            message: As it was pulled.
            delay_level: How long to wait; 0 for longer after every failure, below 0 for a dead letter now.

        Raises:
            ProtocolError: The message could be sent neither back nor anew.
        """
        header = SendBackHeader(
            message.phy_offset,
            self._group,
            delay_level,
            message.unique_key or message.message_id,
            message.topic,
            max_reconsume_times=self._max_reconsume_times,
        )
        try:
            self._invoke(Request(RequestCode.CONSUMER_SEND_MSG_BACK, header))
        except ProtocolError as error:
            _log.warning("message %s is sent anew: %s", message.message_id, error)
            self.send_anew(message, message.reconsume_times + 1)

    def send_anew(self, message: Message, failures: int) -> None:
        """Sends a message to the retry topic as a new one.

        Args:
            message: As it was pulled.
            failures: How often it has failed.

        Raises:
            ProtocolError: The broker refuses, or there is no answer.
        """
        most = ENDLESS if self._max_reconsume_times is None else self._max_reconsume_times
        found = dict(message.properties)
        for name in (props.CRC32, _TRANSACTION):
            found.pop(name, None)
        found.setdefault(props.ORIGIN_MESSAGE_ID, message.unique_key or message.message_id)
        found.setdefault(props.RETRY_TOPIC, message.topic)
        found |= {
            props.RECONSUME_TIME: str(failures),
            props.MAX_RECONSUME_TIMES: str(most),
            props.DELAY: str(FIRST_LEVEL + message.reconsume_times),
        }
        topic = f"{RETRY_PREFIX}{self._group}"
        queue = self._routes.to_publish(topic)[0]
        header = SendMessageHeader(
            PRODUCER_GROUP,
            topic,
            AUTO_CREATE_TOPIC,
            1,
            queue.queue_id,
            message.sys_flag & (flags.COMPRESSED | flags.COMPRESSION_MASK),
            self._clock.now_ms(),
            message.flag,
            props.encode_properties(found),
            failures,
            max_reconsume_times=self._max_reconsume_times,
            broker_name=queue.broker_name,
        )
        self._invoke(Request(RequestCode.SEND_MESSAGE_V2, header, message.body))

    def _invoke(self, request: Request) -> None:
        response = self._link.invoke(request)
        if response.code is not ResponseCode.SUCCESS:
            raise RemoteProtocolError(response.code, response.remark or response.code.name)
