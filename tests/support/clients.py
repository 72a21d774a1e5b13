"""Clients of an embedded broker, without anything of a consumer but what they say of themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from seglog.broker.broker import Broker
from seglog.broker.tables.notices import GAP_MS
from seglog.client.links.local_link import LocalLink
from seglog.remoting.client_headers import MembersChangedHeader
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request, Response
from seglog.remoting.heartbeat import ConsumerData, ConsumeType, HeartbeatBody, MessageModel
from seglog.remoting.later import Deferred
from seglog.remoting.subscription import SubscriptionData

GROUP = "cg"
OnRequest: TypeAlias = Callable[[Request], Response | Deferred[Response]]


class ToldClient:
    """A client that remembers what it was sent."""

    def __init__(self, broker: Broker, client_id: str, on_request: OnRequest | None = None) -> None:
        self._broker = broker
        self.told: list[Request] = []
        self.link = LocalLink(broker, client_id, self.told.append, on_request)

    @property
    def told_groups(self) -> list[str]:
        """The groups whose members changed, once all notices have come; it forgets them."""
        self._broker.advance(GAP_MS)
        groups: list[str] = []
        for request in self.told:
            assert request.code is RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
            assert request.is_oneway
            assert isinstance(request.header, MembersChangedHeader)
            groups.append(request.header.consumer_group)
        self.told.clear()
        return groups

    def beat(
        self,
        *subscriptions: SubscriptionData,
        group: str = GROUP,
        consume_type: ConsumeType = ConsumeType.PASSIVELY,
        message_model: MessageModel = MessageModel.CLUSTERING,
        is_unit_mode: bool = False,
        producer_groups: tuple[str, ...] = (),
        fingerprint: int = 0,
        is_without_subscriptions: bool = False,
    ) -> Response:
        """Sends a heartbeat."""
        data = ConsumerData(group, subscriptions, consume_type, message_model, is_unit_mode=is_unit_mode)
        body = HeartbeatBody(
            self.link.client_id, producer_groups, (data,), fingerprint, is_without_subscriptions
        )
        return self.link.invoke(Request(RequestCode.HEART_BEAT, body=body))
