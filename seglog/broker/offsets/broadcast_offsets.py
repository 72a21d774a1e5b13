"""The offsets of the single clients of broadcasting groups.

Such clients keep their offsets themselves. The broker notes the offsets that they pull and commits the
smallest of a group for ``group@broadcast``. That offset shows the progress of the group, and it is where a
client continues that switches between a proxy and its own connection: a proxy keeps no offset, so it pulls
with an offset below 0.

Truth: memory; only committed offsets survive a restart. A client that has not pulled for two minutes is
removed, or after five minutes if it is still online.

Source: ``BroadcastOffsetManager.java``, ``PullMessageProcessor.java queryBroadcastPullInitOffset``.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import ClassVar, Final

from typing_extensions import override

from seglog.broker.offsets.offsets import ConsumerOffsets
from seglog.broker.tables.clients import ClientTable
from seglog.clock import Clock
from seglog.schedule import Periodic

PROXY_FOR_BROADCAST: Final = 1
"""``RequestSource`` of a proxy that pulls for a client of a broadcasting group."""
EXPIRY_MS: Final = 120_000
MAX_EXPIRY_MS: Final = 300_000
SCAN_MS: Final = 5_000


@dataclass(slots=True)
class _Progress:
    """Offsets of one client in one topic, by queue."""

    is_behind_proxy: bool
    pulled_ms: float
    offsets: dict[int, int] = field(default_factory=dict)


class BroadcastOffsets:
    """The progress of broadcasting clients. Any thread may call it.

    Args:
        clock: Its monotonic time ages the progress.
        clients: The clients that are online.
        offsets: Takes the commits of whole groups.
    """

    def __init__(self, clock: Clock, clients: ClientTable, offsets: ConsumerOffsets) -> None:
        self._clock = clock
        self._clients = clients
        self._offsets = offsets
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], dict[str, _Progress]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no client is known."""
        return not self._known

    def note(
        self, group: str, topic: str, queue_id: int, client_id: str, offset: int, *, is_behind_proxy: bool
    ) -> None:
        """Notes the offset that a client pulls; an offset below the noted one is ignored."""
        now_ms = self._clock.monotonic_ms()
        with self._lock:
            clients = self._known.setdefault((group, topic), {})
            progress = clients.setdefault(client_id, _Progress(is_behind_proxy, now_ms))
            progress.pulled_ms = now_ms
            progress.is_behind_proxy = is_behind_proxy
            progress.offsets[queue_id] = max(offset, progress.offsets.get(queue_id, offset))

    def must_restart(
        self, group: str, topic: str, client_id: str, asked_offset: int, *, is_behind_proxy: bool
    ) -> bool:
        """Returns whether a client must be sent its offset: it switched to or from a proxy, or has none."""
        with self._lock:
            clients = self._known.get((group, topic))
            if clients is None:
                return is_behind_proxy and asked_offset < 0
            progress = clients.get(client_id)
            if progress is None:
                progress = clients[client_id] = _Progress(is_behind_proxy, self._clock.monotonic_ms())
            if progress.is_behind_proxy and asked_offset < 0:
                return True
            return progress.is_behind_proxy != is_behind_proxy

    def start_of(self, group: str, topic: str, queue_id: int, client_id: str) -> int | None:
        """Returns the offset at which a client continues, None if neither it nor its group has one."""
        with self._lock:
            progress = self._known.get((group, topic), {}).get(client_id)
            offset = None if progress is None else progress.offsets.get(queue_id)
        return self._offsets.query_broadcast(group, topic, queue_id) if offset is None else offset

    def scan(self) -> None:
        """Commits the smallest offset of each group, and removes clients that have left."""
        now_ms = self._clock.monotonic_ms()
        smallest: dict[tuple[str, str, int], int] = {}
        with self._lock:
            for (group, topic), clients in list(self._known.items()):
                for client_id, progress in list(clients.items()):
                    age_ms = now_ms - progress.pulled_ms
                    is_online = self._is_online(group, client_id)
                    if is_online or age_ms < EXPIRY_MS:
                        for queue_id, offset in progress.offsets.items():
                            key = group, topic, queue_id
                            smallest[key] = min(offset, smallest.get(key, offset))
                    if age_ms >= (MAX_EXPIRY_MS if is_online else EXPIRY_MS):
                        del clients[client_id]
                if not clients:
                    del self._known[group, topic]
        for (group, topic, queue_id), offset in smallest.items():
            self._offsets.commit_broadcast(group, topic, queue_id, offset)

    def _is_online(self, group: str, client_id: str) -> bool:
        online = self._clients.consumers(group)
        return online is not None and any(client.client_id == client_id for client in online.clients.values())


class BroadcastScan(Periodic):
    """Commits the offsets of broadcasting clients, and removes clients that have left."""

    name: ClassVar[str] = "broadcast-scan"

    def __init__(self, clock: Clock, broadcasts: BroadcastOffsets) -> None:
        super().__init__(clock, SCAN_MS)
        self._broadcasts = broadcasts

    @override
    def is_needed(self) -> bool:
        return not self._broadcasts.is_empty

    @override
    def act(self) -> None:
        self._broadcasts.scan()
