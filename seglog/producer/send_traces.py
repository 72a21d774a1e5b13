"""Traces the stored sends of a producer, in the form of Java's producers.

Source: ``SendMessageTraceHookImpl.java``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from seglog.client.client import Client
from seglog.client.traces import MessageKind, PublishTrace
from seglog.client.tracing import Tracer
from seglog.producer.send_result import SendStatus
from seglog.remoting.command import Response, expect_header
from seglog.remoting.headers import SendMessageResponseHeader
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.record import properties as props
from seglog.storage.format.system_names import TRACE_TOPIC

REGION: Final = "MSG_REGION"
TRACE_ON: Final = "TRACE_ON"


class SendTraces:
    """The traces of one producer. Any thread or task may call it.

    Args:
        client: Whose clock, routes and home.
        group: Of the producer.
    """

    def __init__(self, client: Client, group: str) -> None:
        self._client = client
        self._group = group
        self.tracer = Tracer(client, group, "PRODUCE")

    def sent(
        self,
        queue: MessageQueue,
        status: SendStatus,
        answer: Response,
        properties: Mapping[str, str],
        message_id: str,
        body_bytes: int,
        began_ms: float,
    ) -> None:
        """Notes a send, unless its broker wants no traces.

        Args:
            queue: The queue that it was sent to.
            status: The durability that the broker reached.
            answer: Of the broker.
            properties: Of the message; none of a batch.
            message_id: That the producer gave; those of a batch with commas between them.
            body_bytes: The length of its body.
            began_ms: When the send began, on the monotonic clock.
        """
        said = answer.ext or {}
        region = said.get(REGION)
        if region is None or said.get(TRACE_ON) == "false" or queue.topic.startswith(TRACE_TOPIC):
            return
        client = self._client
        took_ms = max(0.0, client.clock.monotonic_ms() - began_ms)
        self.tracer.add(
            [
                PublishTrace(
                    int(client.clock.now_ms() - took_ms),
                    region,
                    self._group,
                    queue.topic,
                    message_id,
                    properties.get(props.TAGS),
                    properties.get(props.KEYS),
                    client.routes.address_of(queue.broker_name) or "",
                    body_bytes,
                    int(took_ms),
                    MessageKind.DELAY if props.DELAY in properties else MessageKind.NORMAL,
                    expect_header(answer, SendMessageResponseHeader).msg_id,
                    status is SendStatus.SEND_OK,
                )
            ]
        )
