"""Adds offsets for delay levels that have none: RocketMQ would deliver all messages of such a level again.

Only the offset of a level records its progress. But a delivery is a record of the log, so the level's
progress is close to the end of the log. The level restarts :data:`MARGIN_MS` before that end: messages that
were due in this time may be delivered twice, but none is left out.

Source: ``ScheduleMessageService.java start, DeliverDelayedMessageTimerTask``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from seglog.doctor.plans.actions import Action
from seglog.doctor.repair.filters import unit_codes
from seglog.doctor.tables.config_tables import load_tables
from seglog.doctor.tables.lost_tables import was_served
from seglog.errors import CorruptError
from seglog.storage.files import Files
from seglog.storage.format.config import ConfigValue, decode_config, encode_config
from seglog.storage.format.names import CONFIG, SCHEDULE_TOPIC
from seglog.storage.overlay import QueueState
from seglog.storage.survey import Survey

MARGIN_MS: Final = 60_000
_FILE: Final = "delayOffset.json"
_TABLE: Final = "offsetTable"


def mend_delays(found: Survey, files: Files) -> Iterator[Action]:
    """Adds levels that have messages but no offset to the table; yields the actions.

    A missing table is made where a broker had one.

    Args:
        found: A survey of the store, whose log and queues are already repaired.
        files: Access to the store.
    """
    path = found.root / CONFIG / _FILE
    tables = load_tables(files, found.root)
    is_lost = _FILE not in tables.listed and was_served(tables)
    if not files.exists(path) and not is_lost:
        return
    try:
        value: ConfigValue = {} if is_lost else decode_config(files.read_file(path))
    except CorruptError:
        return  # reported, and repaired where possible, by other modules
    table = value.setdefault(_TABLE, {}) if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(table, dict):
        return
    told: list[Action] = []
    for (topic, queue_id), queue in sorted(found.queues.items()):
        level = queue_id + 1
        is_known = {level, str(level)} & table.keys()
        if topic == SCHEDULE_TOPIC and queue.max_offset > queue.min_offset and not is_known:
            offset = _delivered(found, queue)
            table[str(level)] = offset
            detail = f"delay level {level} continues at {offset} of {queue.min_offset}..{queue.max_offset}"
            told.append(Action("offset", f"{CONFIG}/{_FILE}", detail=detail))
    if told:
        files.write_file(path, encode_config(value).encode())
    yield from told


def _delivered(found: Survey, queue: QueueState) -> int:
    """Returns the offset at which the level restarts: the first message that is due within the margin."""
    due_ms = np.array(unit_codes(found, queue.units), np.int64)
    # Messages of a level are due in their order; a lost message has no time.
    behind = int(np.searchsorted(np.maximum.accumulate(due_ms), found.scan.last_store_ms - MARGIN_MS))
    return max(queue.min_offset, queue.first_slot + behind)
