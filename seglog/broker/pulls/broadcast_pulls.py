"""Extra steps of a broadcasting group's pull: the broker notes the client's offset, or sends it one.

Source: ``PullMessageProcessor.java updateBroadcastPulledOffset, queryBroadcastPullInitOffset``,
``BroadcastOffsetManager.java getOffset``.
"""

from __future__ import annotations

from typing import NamedTuple

from seglog.broker.offsets.broadcast_offsets import PROXY_FOR_BROADCAST
from seglog.broker.state.state import BrokerState
from seglog.broker.state.young_queue import is_young
from seglog.remoting.headers import PullMessageHeader
from seglog.remoting.heartbeat import ConsumeType
from seglog.remoting.peer import Peer


class BroadcastClient(NamedTuple):
    """The client that pulls, and whether a proxy pulls for it."""

    client_id: str
    is_behind_proxy: bool


def broadcast_client(state: BrokerState, header: PullMessageHeader, peer: Peer) -> BroadcastClient | None:
    """Returns the client that sent a pull if its group broadcasts, None otherwise."""
    if header.request_source == PROXY_FOR_BROADCAST:
        return BroadcastClient(header.proxy_client_id or peer.client_id, is_behind_proxy=True)
    online = state.clients.consumers(header.consumer_group)
    if online is None or not online.is_broadcast or online.consume_type is not ConsumeType.PASSIVELY:
        return None
    member = state.clients.member(header.consumer_group, peer)
    return None if member is None else BroadcastClient(member.client_id, is_behind_proxy=False)


def broadcast_start(state: BrokerState, header: PullMessageHeader, client: BroadcastClient) -> int | None:
    """Returns the offset for a client that has none or switched its way, None for all others."""
    group, topic, queue_id = header.consumer_group, header.topic, header.queue_id
    broadcasts = state.broadcasts
    if not broadcasts.must_restart(
        group, topic, client.client_id, header.queue_offset, is_behind_proxy=client.is_behind_proxy
    ):
        return None
    known = broadcasts.start_of(group, topic, queue_id, client.client_id)
    if known is None:
        known = 0 if is_young(state, topic, queue_id) else state.store.max_offset(topic, queue_id)
    note_broadcast(state, header, client, known)
    return known


def note_broadcast(
    state: BrokerState, header: PullMessageHeader, client: BroadcastClient, offset: int
) -> None:
    """Notes the offset of a client."""
    state.broadcasts.note(
        header.consumer_group,
        header.topic,
        header.queue_id,
        client.client_id,
        offset,
        is_behind_proxy=client.is_behind_proxy,
    )
