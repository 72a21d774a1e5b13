"""Makes the parts of a broker: each once, from one store, one set of settings and one clock."""

from __future__ import annotations

import logging
import os
import random
from functools import partial
from typing import Final

from seglog.broker.delay.delay_levels import DelayLevels
from seglog.broker.delay.delay_offsets import DelayOffsets
from seglog.broker.delay.delivery import Delivery
from seglog.broker.figures.figures import Figures
from seglog.broker.filters.consumer_filters import ConsumerFilters
from seglog.broker.offsets import (
    SAVED_WITH_OFFSETS,
    ConsumerOffsets,
    OffsetHistory,
    OffsetPast,
    idle_groups,
)
from seglog.broker.offsets.broadcast_offsets import BroadcastOffsets
from seglog.broker.offsets.offset_sync import OffsetSync
from seglog.broker.offsets.offsets import BROADCAST_SUFFIX
from seglog.broker.retention.disk_watermark import DiskGate
from seglog.broker.retention.retention import LogRetention
from seglog.broker.retention.retention_impact import Standing
from seglog.broker.sends.send import send_ext_of, stamp_of
from seglog.broker.sends.usual_sends import usual_sends
from seglog.broker.settings.config import BrokerConfig
from seglog.broker.settings.live_config import LiveConfig
from seglog.broker.state.refusals import Refusals
from seglog.broker.state.state import BrokerState
from seglog.broker.tables import GroupTable, TopicTable
from seglog.broker.tables.clients import ClientTable
from seglog.broker.tables.lock_snapshot import LockPicture, read_owners
from seglog.broker.tables.name_server import KEY_VALUE_FILE, KeyValues, WritePermission
from seglog.broker.tables.pulled_topics import PulledTopics
from seglog.broker.tables.queue_locks import QueueLocks
from seglog.broker.tables.queued_topics import proven_topics
from seglog.broker.tables.relays import Relays
from seglog.broker.tables.request_modes import REQUEST_MODES_FILE, RequestModes
from seglog.broker.tables.topics import is_system_topic
from seglog.clock import Clock, VirtualClock
from seglog.logs import logger
from seglog.remoting.unique_id import UniqueIds
from seglog.schedule import Timers
from seglog.storage.directory import demand_own_tables
from seglog.storage.format.names import CONFIG, OURS
from seglog.storage.format.system_names import is_system_group
from seglog.storage.small_files import ConfigFile
from seglog.storage.store import MessageStore
from seglog.storage.writes import Durability
from seglog.text import count_text

DAY_MS: Final = 86_400_000
HOT_PERCENT: Final = 40
"""``accessMessageInMemoryMaxRatio``: share of the machine's memory that the page cache is assumed to hold."""
EVIDENCE: Final = "evidence"
"""Folder below ``<store>/seglog`` for damaged config files."""
_OFFSETS: Final = "consumerOffset.json"
_GROUPS: Final = "subscriptionGroup.json"

_log = logger(__name__)


def assemble(
    store: MessageStore, config: BrokerConfig, clock: Clock, liveness_clock: Clock, *, forget_locks: bool
) -> BrokerState:
    """Returns the parts of a broker over an open store; nothing is written.

    Args:
        store: Stores its messages.
        config: Its settings.
        clock: Its time.
        liveness_clock: The time by which clients and locks expire.
        forget_locks: Whether the lock owners of the last run are forgotten.

    Raises:
        ConfigError: A config file and its backup cannot be read.
        UnsupportedStoreError: A RocketMQ broker keeps tables of the store in RocksDB.
    """
    demand_own_tables(store.files, store.path)
    is_virtual = isinstance(clock, VirtualClock)
    table = partial(_config_file, store)
    topics = TopicTable(table("topics.json"), config, clock, store.reload_topics)
    topics.take_over(
        ((queue.topic, queue.queue_id) for queue in store.queues()),
        partial(proven_topics, store.files, store.path),
    )
    history = OffsetHistory(store.files, store.path, clock)
    offsets = ConsumerOffsets(table(_OFFSETS), clock, history)
    levels = DelayLevels(config.delay_levels)
    delivery = Delivery(store, levels, DelayOffsets(table("delayOffset.json"), clock), topics, clock)
    groups = GroupTable(table(_GROUPS), config, clock)
    _tell_of_lost_tables(store, offsets, groups)
    filters = ConsumerFilters(table("consumerFilter.json"), clock)
    clients = ClientTable(liveness_clock, groups.is_told, filters.unregister)
    disk = DiskGate(store.path, config.disk_refuse_percent, config.disk_force_percent)

    locks = QueueLocks(liveness_clock, config.queue_lock_live_ms)
    if not forget_locks:
        locks.restore(read_owners(store.files, store.path))

    def standing() -> Standing:
        idle_days = config.retention_idle_days
        since_ms = clock.now_ms() - idle_days * DAY_MS
        ignored = idle_groups(OffsetPast(store.files, store.path), since_ms) if idle_days else ()
        return Standing(offsets.all(), delivery.progress, ignored)

    stamp, send_ext = stamp_of(config), send_ext_of(config)
    retention = LogRetention(clock, store, config, disk, standing)
    settings = LiveConfig(config, clock.now_ms)
    for part in (topics, groups, retention):
        settings.tell(part.use)
    return BrokerState(
        settings=settings,
        store=store,
        topics=topics,
        groups=groups,
        offsets=offsets,
        offset_sync=OffsetSync(
            offsets, is_waited_for=store.durability is Durability.SYNC, is_inline=is_virtual
        ),
        locks=locks,
        lock_record=LockPicture(
            store.files, store.path, locks, clock, is_synced=store.durability is Durability.SYNC
        ),
        # On virtual time the same calls make the same store; ``life`` gives different ids after the next
        # open.
        ids=UniqueIds(clock, process_id=0, life=store.max_phy_offset) if is_virtual else UniqueIds(clock),
        stamp=stamp,
        send_ext=send_ext,
        hot_bytes=_hot_bytes() if config.hot_bytes is None else config.hot_bytes,
        delivery=delivery,
        random=random.Random(0 if is_virtual else None),  # noqa: S311 - spreads load, guards nothing
        clients=clients,
        pulled_topics=PulledTopics(liveness_clock),
        broadcasts=BroadcastOffsets(liveness_clock, clients, offsets),
        filters=filters,
        disk=disk,
        retention=retention,
        relays=Relays(liveness_clock, Timers(liveness_clock)),
        request_modes=RequestModes(table(REQUEST_MODES_FILE), clock),
        key_values=KeyValues(
            ConfigFile(store.files, store.path / KEY_VALUE_FILE, store.path / OURS / EVIDENCE), clock
        ),
        write_permission=WritePermission(),
        figures=Figures(store, clock, lambda topic: is_system_topic(topic, config)),
        refusals=Refusals(),
        try_send=usual_sends(store, topics, disk, stamp, send_ext),
        now_ms=clock.now_ms,
        opened_ms=clock.now_ms(),
    )


def _config_file(store: MessageStore, name: str) -> ConfigFile:
    return ConfigFile(store.files, store.path / CONFIG / name, store.path / OURS / EVIDENCE)


def _hot_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * HOT_PERCENT // 100


def _tell_of_lost_tables(store: MessageStore, offsets: ConsumerOffsets, groups: GroupTable) -> None:
    """Adds groups whose table is gone, and names groups whose offsets are.

    The offsets are gone, and are not of a new store, if RocketMQ has saved other tables together with them.
    """
    count = groups.take_over(
        lambda: (group.removesuffix(BROADCAST_SUFFIX) for group, _topic, _queue_id in offsets.all())
    )
    if count:
        # Without a RocketMQ they may be new groups, which a kill came before.
        _log.log(
            logging.WARNING if _was_served(store) else logging.INFO,
            "%s is gone or empty, and so is its backup: %s that have offsets got the usual settings",
            store.path / CONFIG / _GROUPS,
            count_text(count, "group"),
        )
    if not offsets.is_new:
        return
    named = [group.name for group in groups.all() if not is_system_group(group.name)]
    if named and _was_served(store):
        _log.warning(
            "%s is gone or empty, and so is its backup: where %s of the store stood is not known. Each begins"
            " where its clients begin without an offset; `seglog offsets reset` sets it before they start",
            store.path / CONFIG / _OFFSETS,
            count_text(len(named), "group"),
        )


def _was_served(store: MessageStore) -> bool:
    """Returns whether a RocketMQ has saved tables of the store."""
    return any(store.files.exists(store.path / CONFIG / name) for name in SAVED_WITH_OFFSETS)
