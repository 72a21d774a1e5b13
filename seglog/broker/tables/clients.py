"""The clients of a broker: groups of consumers and producers, and their subscriptions.

A client is in a group from its first heartbeat until it leaves, its connection ends, or it sends no heartbeat
for two minutes. The other clients of the group are notified, because they share its queues (``notices.py``).

The broker keeps one subscription of a group for each topic, the newest of any client; a topic that one client
leaves out is removed for all: RocketMQ's rule. So clients with different subscriptions take each other's
messages; the table lists them (:meth:`ClientTable.disagreements`) and logs the first occurrence.

Truth: memory only. After a restart the next heartbeats fill it.

Source: ``ConsumerManager.java``, ``ConsumerGroupInfo.java``, ``ProducerManager.java``,
``DefaultConsumerIdsChangeListener.java``. Difference: the other clients are also notified of an expired
client; in RocketMQ they notice it at their next rebalance, up to 20 s later.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from seglog.broker.tables.notices import Notices
from seglog.clock import Clock
from seglog.logs import logger
from seglog.remoting.client_headers import MembersChangedHeader
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import OUR_SENDER, Request
from seglog.remoting.heartbeat import ConsumerData, ConsumeType, MessageModel
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.peer import Peer
from seglog.remoting.subscription import SubscriptionData
from seglog.storage.format.names import RETRY_PREFIX

EXPIRY_MS: Final = 120_000
"""``channelExpiredTimeout``."""

_CHANGED: Final = RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
_log = logger(__name__)
_WARN_AGAIN_MS: Final = 600_000
_MOST_WARNED: Final = 1_000
"""Most groups with differing subscriptions that are logged in ten minutes."""


@dataclass(frozen=True, slots=True)
class Client:
    """A client as a member of one group.

    Attributes:
        peer: Its connection.
        heard_ms: Monotonic time of its last heartbeat.
        choices: Its own subscriptions by topic: a language and an expression.
    """

    client_id: str
    peer: Peer
    heard_ms: float
    choices: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A topic to which the clients of one group have different subscriptions.

    Attributes:
        clients: Ids of the clients by subscription, None for those without one.
    """

    topic: str
    clients: Mapping[tuple[str, str] | None, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """The present state of a consumer group that is online.

    Attributes:
        consume_type: From its last heartbeat, as are the next two.
        clients: Clients by identity, in the order in which they joined.
        subscriptions: By topic.
    """

    name: str
    consume_type: ConsumeType
    message_model: MessageModel
    consume_from: str
    clients: Mapping[Hashable, Client] = field(default_factory=dict)
    subscriptions: Mapping[str, SubscriptionData] = field(default_factory=dict)

    @property
    def is_broadcast(self) -> bool:
        """Whether each client gets all messages."""
        return self.message_model is MessageModel.BROADCASTING

    def disagreements(self) -> tuple[Disagreement, ...]:
        """Returns the topics to which its clients have different subscriptions.

        The retry topics of POP, which are always empty here, are left out: consumers that let the broker
        choose their queues subscribe to these, and other consumers do not.
        """
        found: list[Disagreement] = []
        of_pop = f"{RETRY_PREFIX}{self.name}_"
        named = {topic for client in self.clients.values() for topic in client.choices}
        for topic in sorted(one for one in named if not one.startswith(of_pop)):
            by_choice: dict[tuple[str, str] | None, tuple[str, ...]] = {}
            for client in self.clients.values():
                choice = client.choices.get(topic)
                by_choice[choice] = (*by_choice.get(choice, ()), client.client_id)
            if len(by_choice) > 1:
                found.append(Disagreement(topic, by_choice))
        return tuple(found)


class ClientTable:
    """The clients of a broker. Any thread may call it; reading takes no lock.

    Args:
        clock: Its monotonic time ages the clients.
        is_told: Returns whether the clients of a group are notified when one joins or leaves.
        went_offline: Called with the name of a consumer group whose last client left.
    """

    def __init__(
        self, clock: Clock, is_told: Callable[[str], bool], went_offline: Callable[[str], None]
    ) -> None:
        self._clock = clock
        self._is_told = is_told
        self._went_offline = went_offline
        self._lock = threading.Lock()
        self._consumers: dict[str, ConsumerGroup] = {}
        self._producers: dict[str, dict[Hashable, Client]] = {}
        self._fingerprints: dict[str, int] = {}
        self._warned_ms: dict[str, float] = {}
        self._groups_of: dict[Hashable, set[tuple[bool, str]]] = {}  # is it a consumer's, name
        self.notices = Notices(clock, self._notify)

    @property
    def is_empty(self) -> bool:
        """Whether there is no client."""
        return not self._consumers and not self._producers

    def consumers(self, group: str) -> ConsumerGroup | None:
        """Returns a consumer group, None if it is not online."""
        return self._consumers.get(group)

    def all_consumers(self) -> list[ConsumerGroup]:
        """Returns every consumer group that is online, by name."""
        return sorted(self._consumers.copy().values(), key=lambda group: group.name)

    def producers(self, group: str) -> tuple[Client, ...]:
        """Returns the clients of a producer group."""
        return tuple(self._producers.get(group, {}).copy().values())

    def all_producers(self) -> dict[str, tuple[Client, ...]]:
        """Returns the clients of every producer group that is online, by name."""
        with self._lock:
            return {name: tuple(self._producers[name].values()) for name in sorted(self._producers)}

    def producer(self, client_id: str) -> Client | None:
        """Returns the client with an id in any producer group, the one with the last heartbeat."""
        with self._lock:
            named = [
                client
                for clients in self._producers.values()
                for client in clients.values()
                if client.client_id == client_id
            ]
        return max(named, key=lambda client: client.heard_ms, default=None)

    def silent_ms(self, client: Client) -> float:
        """Returns the time since the last heartbeat of a client, in ms."""
        return self._clock.monotonic_ms() - client.heard_ms

    def member(self, group: str, peer: Peer) -> Client | None:
        """Returns the client that sent a request as a member of a consumer group, None if it is not one."""
        online = self._consumers.get(group)
        return None if online is None else online.clients.get(peer.key())

    def id_of(self, group: str, peer: Peer) -> str:
        """Returns the id, in a consumer group, of the client that sent a request.

        Pulls and commits carry no client id: over a connection only heartbeats do, for each group.
        """
        member = self.member(group, peer)
        return peer.client_id if member is None else member.client_id

    def disagreements(self) -> dict[str, tuple[Disagreement, ...]]:
        """Returns the groups whose clients subscribe to different things."""
        found = {group.name: group.disagreements() for group in self.all_consumers()}
        return {name: topics for name, topics in found.items() if topics}

    def note_fingerprint(self, group: str, fingerprint: int) -> bool:
        """Stores a group's last fingerprint; returns whether it differs from the one before."""
        before = self._fingerprints.get(group)
        self._fingerprints[group] = fingerprint
        return before not in (None, fingerprint)

    def heard_consumer(
        self, peer: Peer, client_id: str, data: ConsumerData, *, keeps_subscriptions: bool = False
    ) -> bool:
        """Notes a heartbeat in a consumer group; returns whether the other clients must be notified.

        Args:
            peer: Its sender.
            client_id: The client's id in the heartbeat.
            data: Its part about the group.
            keeps_subscriptions: Whether it leaves the subscriptions out because they are known.
        """
        key, now_ms = peer.key(client_id), self._clock.monotonic_ms()
        with self._lock:
            before = self._consumers.get(data.group) or ConsumerGroup(
                data.group, data.consume_type, data.message_model, data.consume_from
            )
            known = before.clients.get(key)
            choices = {subscription.topic: subscription.choice for subscription in data.subscriptions}
            if keeps_subscriptions:
                choices = {} if known is None else dict(known.choices)
            subscriptions = before.subscriptions
            if not keeps_subscriptions:
                subscriptions = _merged(subscriptions, data.subscriptions)
            after = replace(
                before,
                consume_type=data.consume_type,
                message_model=data.message_model,
                consume_from=data.consume_from,
                clients={**before.clients, key: Client(client_id, peer, now_ms, choices)},
                subscriptions=subscriptions,
            )
            self._consumers[data.group] = after
            self._groups_of.setdefault(key, set()).add((True, data.group))
        if (known is None or known.choices != choices) and not before.disagreements():
            self._warn_of_disagreements(after)
        if known is None:
            self._warn_of_namesakes(after, client_id)
        has_changed = known is None or after.subscriptions.keys() != before.subscriptions.keys()
        if has_changed:
            self._tell(after)
        return has_changed

    def heard_producer(self, peer: Peer, client_id: str, group: str) -> None:
        """Notes a heartbeat in a producer group."""
        client, key = Client(client_id, peer, self._clock.monotonic_ms()), peer.key(client_id)
        with self._lock:
            self._producers.setdefault(group, {})[key] = client
            self._groups_of.setdefault(key, set()).add((False, group))

    def leave_consumers(self, peer: Peer, client_id: str, group: str) -> None:
        """Removes a client from a consumer group, and notifies the others."""
        self._take_out(group, [peer.key(client_id)])

    def leave_producers(self, peer: Peer, client_id: str, group: str) -> None:
        """Removes a client from a producer group."""
        self._take_out_producers(group, [peer.key(client_id)])

    def lose(self, peer: Peer) -> None:
        """Removes a client from all its groups: its connection has ended."""
        key = peer.key()
        with self._lock:
            groups = list(self._groups_of.get(key, ()))
        for is_consumer, group in groups:
            (self._take_out if is_consumer else self._take_out_producers)(group, [key])

    def expire(self) -> None:
        """Removes every client without a recent heartbeat."""
        heard_ms = self._clock.monotonic_ms() - EXPIRY_MS
        with self._lock:
            consumers = {name: _silent(group.clients, heard_ms) for name, group in self._consumers.items()}
            producers = {name: _silent(clients, heard_ms) for name, clients in self._producers.items()}
        for name, keys in consumers.items():
            self._take_out(name, keys)
        for name, keys in producers.items():
            self._take_out_producers(name, keys)

    def _take_out(self, group: str, keys: Iterable[Hashable]) -> None:
        with self._lock:
            before = self._consumers.get(group)
            gone = [] if before is None else [key for key in keys if key in before.clients]
            if before is None or not gone:
                return
            left = dict(before.clients)
            for key in gone:
                del left[key]
                self._leave(key, (True, group))
            after = replace(before, clients=left)
            if left:
                self._consumers[group] = after
            else:
                del self._consumers[group]
        if left:
            self._tell(after)
        else:
            self.notices.forget(group)
            self._went_offline(group)

    def _take_out_producers(self, group: str, keys: Iterable[Hashable]) -> None:
        with self._lock:
            clients = self._producers.get(group, {})
            for key in keys:
                if clients.pop(key, None) is not None:
                    self._leave(key, (False, group))
            if not clients:
                self._producers.pop(group, None)

    def _leave(self, key: Hashable, group: tuple[bool, str]) -> None:
        """Notes that a client has left one group, under the lock."""
        groups = self._groups_of[key]
        groups.discard(group)
        if not groups:
            del self._groups_of[key]

    def _tell(self, group: ConsumerGroup) -> None:
        """Notifies the clients of a group that its members have changed, outside of the lock."""
        if not group.is_broadcast and self._is_told(group.name):
            self.notices.tell(group.name)

    def tell_taken(self, group: str, client_id: str, queue: MessageQueue) -> None:
        """Notifies a client of ours that another member of its group has begun in its queue.

        One in this process has dropped the queue when this returns, one at a connection soon after. Others
        learn of it by a rebalance.
        """
        online = self._consumers.get(group)
        header = MembersChangedHeader(group, queue.topic, queue.broker_name, queue.queue_id)
        for client in () if online is None else online.clients.values():
            if client.client_id == client_id and client.peer.language == OUR_SENDER.language:
                self._send(group, client, Request(_CHANGED, header, is_oneway=True))

    def _warn_of_disagreements(self, group: ConsumerGroup) -> None:
        """Logs differing subscriptions in a group."""
        found = group.disagreements()
        if not found:
            return
        if not self._may_warn(group.name):
            return
        for one in found:
            _log.warning(
                "the clients of group %s subscribe to different things of topic %s, and lose messages: %s",
                group.name,
                one.topic,
                "; ".join(
                    f"{'nothing' if choice is None else ' '.join(choice)}: {', '.join(ids)}"
                    for choice, ids in one.clients.items()
                ),
            )

    def _warn_of_namesakes(self, group: ConsumerGroup, client_id: str) -> None:
        """Logs that clients of a group have one id; it may be one client after a lost connection."""
        count = sum(client.client_id == client_id for client in group.clients.values())
        if count > 1 and self._may_warn(f"{group.name} {client_id}"):
            _log.warning(
                "%d connections of group %s have the client id %s: if they are of different clients, these"
                " take the same queues, and get the same messages; each client needs an id of its own",
                count,
                group.name,
                client_id,
            )

    def _may_warn(self, name: str) -> bool:
        """Returns whether a warning of that name is due: not often, since clients join and leave."""
        now_ms = self._clock.monotonic_ms()
        with self._lock:
            due = [each for each, at_ms in self._warned_ms.items() if now_ms - at_ms >= _WARN_AGAIN_MS]
            for each in due:
                del self._warned_ms[each]
            if name in self._warned_ms or len(self._warned_ms) >= _MOST_WARNED:
                return False
            self._warned_ms[name] = now_ms
        return True

    def _notify(self, name: str) -> None:
        """Notifies every present client of a group."""
        group = self._consumers.get(name)
        if group is None:
            return
        request = Request(_CHANGED, MembersChangedHeader(name), is_oneway=True)
        for client in group.clients.values():
            self._send(name, client, request)

    def _send(self, group: str, client: Client, request: Request) -> None:
        if client.peer.channel is None:
            return
        try:
            client.peer.channel.notify(request)
        except Exception as error:  # noqa: BLE001 - an ended connection; the caller serves another client
            _log.warning("client %s of group %s is not notified: %r", client.client_id, group, error)


def _silent(clients: Mapping[Hashable, Client], since_ms: float) -> list[Hashable]:
    """Returns the clients without a heartbeat since a moment."""
    return [key for key, client in clients.items() if client.heard_ms < since_ms]


def _merged(
    known: Mapping[str, SubscriptionData], said: Iterable[SubscriptionData]
) -> Mapping[str, SubscriptionData]:
    merged: dict[str, SubscriptionData] = {}
    for subscription in said:
        old = known.get(subscription.topic)
        is_newer = old is None or subscription.version > old.version
        merged[subscription.topic] = subscription if is_newer or old is None else old
    return merged
