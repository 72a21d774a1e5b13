"""The rebalance of a member: it asks for the members of the group, and computes its own share.

It does so at its start, every 20 s (every second while its share is incomplete), when a broker notifies it of
joined or left members, when its topics change, and in ``run_until_idle``. It reports the queues that its
share still lacks, because until it has them the member is not idle.

Source: ``RebalanceImpl.java``, ``RebalanceService.java``, ``RebalancePushImpl.java``.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from seglog.client.client import Client
from seglog.client.home import Bell
from seglog.consumer.brokers import Brokers
from seglog.consumer.lease import BROKER_LIVE_MS, Lease
from seglog.consumer.process_queue import MOST_IDLE_PULL_MS, ProcessQueue
from seglog.consumer.settings import ConsumerSettings
from seglog.consumer.shares.locks import LockClient
from seglog.consumer.shares.words import in_words
from seglog.errors import SeglogError
from seglog.logs import logger
from seglog.remoting.allocation import share_of
from seglog.remoting.client_headers import ConsumerGroupHeader
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, expect_body
from seglog.remoting.heartbeat import ConsumerListBody
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.names import RETRY_PREFIX

SHARE_INTERVAL_MS: Final = 20_000
"""``rocketmq.client.rebalance.waitInterval``."""
MIN_SHARE_INTERVAL_MS: Final = 1_000
"""``rocketmq.client.rebalance.minInterval``; also the pause after an incomplete share."""
KEPT_MS: Final = 5_000
"""How long another client may keep a queue's lock before it is logged: a hand-over takes less."""
_NOT_KNOWN: Final = "its queues are not known yet"

_log = logger(__name__)


class Sharing:
    """The share of one member. Its flows run on the client's home.

    Args:
        client: Its routes, id and clock are used.
        settings: The settings of the consumer.
        topics: Its topics at every moment; who changes them then calls :meth:`add` or :meth:`remove`.
        locks: Locks queues before they are taken; None if they are not locked.
        queues: Its queues.
        take: Called with a queue that it gets, and its lease.
        let_go: Called with a queue that it must give up.
        saw: Called with the queues of a topic, before it takes any.
    """

    def __init__(
        self,
        client: Client,
        settings: ConsumerSettings,
        topics: Collection[str],
        locks: LockClient | None,
        queues: Mapping[MessageQueue, ProcessQueue],
        take: Callable[[MessageQueue, Lease | None], None],
        let_go: Callable[[ProcessQueue], object],
        saw: Callable[[str, Collection[MessageQueue]], None],
    ) -> None:
        self._client = client
        self._settings = settings
        self._topics = topics
        self._locks = locks
        self._queues = queues
        self._take = take
        self._let_go = let_go
        self._saw = saw
        self._brokers = Brokers(client)
        self._soon = Bell(client.home)
        self._now = Bell(client.home)
        self._shared_ms = -math.inf
        self._looks = 0
        self._asked: set[str] = set()
        self._is_due = True
        self._is_over = False
        self._warned: set[str | MessageQueue] = set()
        self._kept_since_ms: dict[MessageQueue, float] = {}
        self._asked_locks: set[MessageQueue] = set()
        self._lacking = dict.fromkeys(topics, _NOT_KNOWN)

    @property
    def lacking(self) -> Sequence[str]:
        """The reasons why its share is incomplete; any thread may read it."""
        return [f"topic {topic}: {why}" for topic, why in self._lacking.copy().items()]

    @property
    def left_locks(self) -> Collection[MessageQueue]:
        """Queues whose lock requests were in flight at its end: they may be locked, but are not taken."""
        return self._asked_locks - self._queues.keys()

    def add(self, topic: str) -> None:
        """Adds a topic, whose queues are shared soon."""
        self._lacking[topic] = _NOT_KNOWN
        self.soon()

    def remove(self, topic: str) -> None:
        """Removes a topic, and gives up its queues."""
        self._lacking.pop(topic, None)
        for queue, held in tuple(self._queues.items()):
            if queue.topic == topic and not held.is_dropped:
                self._let_go(held)

    def soon(self) -> None:
        """Requests a rebalance, at least a second after the last one."""
        self._is_due = True
        self._soon.ring()

    def look(self) -> None:
        """Rebalances now if it is due, and topics without a queue in any case: a queue may be new.

        The share counts as incomplete until that is done. An idle member with all its queues pays nothing.
        """
        shared = () if self._is_due else {queue.topic for queue in self._queues}
        wanted = [topic for topic in self._topics if topic not in shared or topic in self._lacking]
        if wanted and not self._is_over:
            self._looks += 1
            self._asked.update(wanted)
            for topic in wanted:
                self._lacking.setdefault(topic, _NOT_KNOWN)
            self._now.ring()
            self._soon.ring()

    def end(self) -> None:
        """Ends the rebalances: nothing counts as missing any more."""
        self._is_over = True
        self._lacking.clear()

    async def keep(self) -> None:
        """Rebalances periodically."""
        clock = self._client.clock
        while not self._client.is_over:
            rest_ms = self._shared_ms + MIN_SHARE_INTERVAL_MS - clock.monotonic_ms()
            if rest_ms > 0:
                await self._now.wait(rest_ms)
            self._shared_ms = clock.monotonic_ms()
            self._is_due = False
            asked, self._asked = self._asked, set()
            is_whole = True
            for topic in tuple(self._topics):
                is_whole &= await self._share(topic, is_asked=topic in asked)
            await self._soon.wait(SHARE_INTERVAL_MS if is_whole else MIN_SHARE_INTERVAL_MS)

    async def _share(self, topic: str, *, is_asked: bool) -> bool:
        """Takes its share of a topic; returns whether it has all of it."""
        routes, looks = self._client.routes, self._looks
        try:
            queues = () if is_asked else routes.known_to_read(topic)
            if not (queues or await routes.refresh(topic) or routes.known_to_read(topic)):
                self._saw(topic, ())
                self._note(topic, None, looks)  # there is nothing to consume
                if topic.startswith(RETRY_PREFIX):  # the broker creates it at a heartbeat
                    return True
                if topic not in self._warned:
                    self._warned.add(topic)
                    what = "topic %s does not exist: group %s gets its messages once it does; check the name"
                    _log.warning(what, topic, self._group)
                return False
            queues = routes.known_to_read(topic)
            self._saw(topic, queues)
            is_shared = bool(queues) and not self._settings.is_broadcasting
            members = await self._members(queues) if is_shared else ()
            if members is None:
                self._note(topic, "its broker does not know this member yet", looks)
                return False
            share: Collection[MessageQueue] = queues
            if is_shared:
                allocated = self._allocated(topic, queues, members)
                if allocated is None:
                    self._note(topic, "its allocation strategy failed", looks)
                    return False
                share = allocated
        except SeglogError as error:
            _log.log(
                self._client.troubles.level(f"share of {topic} for {self._group}", error),
                "queues of topic %s stay as they are for group %s: %s",
                topic,
                self._group,
                error,
            )
            if topic in self._lacking:  # a member that had its share, and was not asked, keeps its queues
                self._lacking[topic] = str(error)
            return False
        lacks = await self._become(topic, frozenset(share), members)
        self._note(topic, lacks, looks)
        return lacks is None

    async def others(self, topic: str) -> Collection[MessageQueue]:
        """Returns its queues of a topic that are other members' shares by now; none if no broker says so.

        A broker is asked for the members, and the share is computed of them; nothing is taken or given up.
        """
        queues = self._client.routes.known_to_read(topic)
        try:
            members = await self._members(queues) if queues else None
            share = None if members is None else self._allocated(topic, queues, members)
        except SeglogError as error:
            _log.debug("the share of %s is not checked for group %s: %s", topic, self._group, error)
            return ()
        if share is None:
            return ()
        return [queue for queue in self._queues if queue.topic == topic and queue not in share]

    def _allocated(
        self, topic: str, queues: Collection[MessageQueue], members: Collection[str]
    ) -> Collection[MessageQueue] | None:
        """Returns this member's share by the application's strategy; None if the strategy fails."""
        strategy, me = self._settings.strategy, self._client.client_id
        try:
            mine = tuple(share_of(strategy, self._group, me, queues, members))
            foreign = set(mine) - set(queues)
        except SeglogError:
            raise
        except Exception as error:  # noqa: BLE001 - the application's code
            self._strategy_failed(topic, error)
            return None
        if foreign:
            self._strategy_failed(
                topic, ValueError(f"it gave {min(foreign, key=str)}, no queue of the topic")
            )
            return None
        return mine

    def _strategy_failed(self, topic: str, error: Exception) -> None:
        what = f"the strategy, of topic {topic}"
        level = logging.DEBUG if what in self._warned else logging.WARNING
        self._warned.add(what)
        _log.log(
            level,
            "queues of topic %s stay as they are for group %s, and are shared again soon: the allocation"
            " strategy failed: %r",
            topic,
            self._group,
            error,
        )

    @property
    def _group(self) -> str:
        return self._settings.group

    def _note(self, topic: str, lacks: str | None, looks: int) -> None:
        """Notes what a share lacks; an answer older than the last request does not count."""
        if lacks is not None and not self._is_over and topic in self._topics:
            self._lacking[topic] = lacks
        elif looks == self._looks:
            self._lacking.pop(topic, None)

    async def _members(self, queues: Collection[MessageQueue]) -> tuple[str, ...] | None:
        """Returns the ids of the group's members, None if the broker does not know of this one yet.

        If the client began while the broker was down, the broker does not know it: a heartbeat is sent first
        then.
        """
        request = Request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, ConsumerGroupHeader(self._group))
        broker_name = min(queues).broker_name
        for is_last in (False, True):
            answer = await self._brokers.ask(broker_name, request)
            if answer.code is not ResponseCode.SYSTEM_ERROR:  # it knows members, perhaps only others
                client_ids = expect_body(answer, ConsumerListBody).client_ids
                if self._client.client_id in client_ids:
                    return self._distinct(client_ids)
            if not is_last:
                await self._client.beat()
        return None

    def _distinct(self, client_ids: Collection[str]) -> tuple[str, ...]:
        """Returns the ids without doubles: a member that is there twice would leave a share to no one.

        It may be one client, whose broken connection is not over for its broker yet.
        """
        found = tuple(dict.fromkeys(client_ids))
        if len(found) < len(client_ids):
            me, what = self._client.client_id, "clients with one id"
            if tuple(client_ids).count(me) > 1 and what not in self._warned:
                self._warned.add(what)
                _log.warning(
                    "another connection of group %s has the client id %s too: if it is of another client,"
                    " both take the same queues and get the same messages; each needs an id of its own",
                    self._group,
                    me,
                )
        return found

    async def _become(self, topic: str, share: frozenset[MessageQueue], members: Iterable[str]) -> str | None:
        """Gives up queues outside of its share and takes those in it; returns what it lacks, or None."""
        mine = {queue: held for queue, held in self._queues.items() if queue.topic == topic}
        others = [queue for queue, held in mine.items() if queue not in share and not held.is_dropped]
        if others:
            _log.info(
                "group %s gives up %s: another member's share",
                self._group,
                in_words(others),
            )
        kept = [mine[queue] for queue in sorted(mine.keys() & share)]
        lost = [held.queue for held in kept if held.is_pull_lost and not held.is_dropped]
        if lost:
            what = "group %s takes %s again: what pulls that was not heard of for more than %d ms"
            _log.error(what, self._group, in_words(lost), MOST_IDLE_PULL_MS)
        for queue in (*others, *lost):
            self._let_go(mine[queue])
        missing = share - mine.keys()
        asked_ms = 0.0
        locked: frozenset[MessageQueue] = missing
        silent: Collection[str] = ()
        if self._locks is not None and missing:
            self._asked_locks |= missing
            locked, answered, asked_ms = await self._locks.lock(missing)
            silent = {queue.broker_name for queue in missing} - answered
        is_wanted = topic in self._topics and not self._is_over
        taken = sorted(locked - self._queues.keys()) if is_wanted else []
        if taken:
            _log.info("group %s takes %s", self._group, in_words(taken))
        for queue in taken:
            lease = None
            if self._locks is not None:
                lease = Lease()
                lease.renew(asked_ms)
            self._take(queue, lease)
        if not self._is_over:
            self._asked_locks.clear()
        if silent:
            return f"no locks of broker {', '.join(sorted(silent))}"
        others_locks = missing - locked
        self._watch_locks(topic, others_locks, members)
        if others_locks:
            return f"another client has the lock of {in_words(others_locks)}"
        going = {queue for queue in mine.keys() & share if mine[queue].is_dropped}
        return f"{in_words(going)} is being given back" if going else None

    def _watch_locks(self, topic: str, kept: Collection[MessageQueue], members: Iterable[str]) -> None:
        """Logs, once, that another client keeps locks, as a killed one does for a minute."""
        now_ms = self._client.clock.monotonic_ms()
        for queue in [one for one in self._kept_since_ms if one.topic == topic and one not in kept]:
            del self._kept_since_ms[queue]
            self._warned.discard(queue)
        late = [
            one for one in sorted(kept) if now_ms - self._kept_since_ms.setdefault(one, now_ms) >= KEPT_MS
        ]
        new = [queue for queue in late if queue not in self._warned]
        if not new:
            return
        self._warned.update(new)
        others = sorted(set(members) - {self._client.client_id})
        known = f"other members are {', '.join(others)}" if others else "the group has no other member"
        left_s = math.ceil((self._kept_since_ms[new[0]] + BROKER_LIVE_MS - now_ms) / 1000)
        _log.warning(
            "group %s waits for %s: another client has the lock, and %s; a client that was killed"
            " has it for another %d s at most",
            self._group,
            in_words(new),
            known,
            left_s,
        )
