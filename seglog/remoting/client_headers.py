"""Typed headers of the requests about clients and the groups that they are in; see ``headers.py``.

Source: ``remoting/.../protocol/header/UnregisterClientRequestHeader.java`` and others.
"""

from __future__ import annotations

from dataclasses import dataclass

from seglog.remoting.command import Header
from seglog.remoting.headers import wire_names


@wire_names()
@dataclass(frozen=True, slots=True)
class ConsumerGroupHeader(Header):
    """GET_CONSUMER_LIST_BY_GROUP, GET_CONSUMER_CONNECTION_LIST and NOTIFY_CONSUMER_IDS_CHANGED."""

    consumer_group: str


@wire_names()
@dataclass(frozen=True, slots=True)
class ProducerGroupHeader(Header):
    """GET_PRODUCER_CONNECTION_LIST."""

    producer_group: str


@wire_names(client_id="clientID")
@dataclass(frozen=True, slots=True)
class UnregisterClientHeader(Header):
    """UNREGISTER_CLIENT: a client leaves the groups that it names."""

    client_id: str
    producer_group: str | None = None
    consumer_group: str | None = None


@wire_names()
@dataclass(frozen=True, slots=True)
class GroupForbiddenHeader(Header):
    """UPDATE_AND_GET_GROUP_FORBIDDEN.

    Attributes:
        is_readable: None only asks.
    """

    group: str
    topic: str
    is_readable: bool | None = None
