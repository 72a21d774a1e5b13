"""Requests that clients make, and what their answers hold: for tests of links to any broker."""

from __future__ import annotations

from seglog.remoting.bodies import RecordsBody
from seglog.remoting.codes import PullFlag, RequestCode, ResponseCode
from seglog.remoting.command import Request, Response, expect_body
from seglog.remoting.headers import GetRouteInfoHeader, PullMessageHeader, SendMessageHeader
from seglog.remoting.heartbeat import ConsumerData, HeartbeatBody
from seglog.remoting.subscription import SubscriptionData
from seglog.storage.format.record import decode_message

GROUP = "g"


def route_of(topic: str) -> Request:
    """Asks a name server where a topic is."""
    return Request(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoHeader(topic))


def send_to(topic: str, body: bytes = b"x", queue_id: int = 0) -> Request:
    """Sends a message."""
    header = SendMessageHeader("pg", topic, "TBW102", 4, queue_id, 0, 1_234, 0, b"")
    return Request(RequestCode.SEND_MESSAGE_V2, header, body)


def pull_from(topic: str, queue_offset: int, suspend_ms: int = 0) -> Request:
    """Pulls from queue 0, and may be held."""
    flags = PullFlag.SUBSCRIPTION | (PullFlag.SUSPEND if suspend_ms else PullFlag(0))
    header = PullMessageHeader(GROUP, topic, 0, queue_offset, 32, int(flags), 0, suspend_ms, 0, "*", None)
    return Request(RequestCode.PULL_MESSAGE, header)


def beat_of(client_id: str, topic: str, group: str = GROUP) -> Request:
    """Says that a client is a member of a group."""
    data = ConsumerData(group, (SubscriptionData(topic, version=1),))
    return Request(RequestCode.HEART_BEAT, body=HeartbeatBody(client_id, ("pg",), (data,)))


def bodies_of(answer: Response) -> list[bytes]:
    """Returns the bodies of the messages that a pull has found."""
    assert answer.code is ResponseCode.SUCCESS, answer
    return [bytes(decode_message(record).body) for record in expect_body(answer, RecordsBody).records]
