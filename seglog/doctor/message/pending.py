"""What a record that consumers do not read waits for, and whether it happened: a time, or an outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from seglog.broker.tables import as_int, as_int_key, as_object
from seglog.doctor.message import copy_names
from seglog.doctor.message.log_access import LogView
from seglog.doctor.message.roles import Role, parent_of, role_of
from seglog.errors import ConfigError
from seglog.storage.directory import read_units_left
from seglog.storage.files import read_start
from seglog.storage.format.config import ConfigValue
from seglog.storage.format.names import CONFIG, OP_TOPIC
from seglog.storage.format.record import Message, unit_tags_code
from seglog.storage.format.timer import TIMER_CHECKPOINT_FILE_BYTES, decode_timer_checkpoint
from seglog.storage.small_files import ConfigFile

DELAY_FILE: Final = f"{CONFIG}/delayOffset.json"
TIMER_FILE: Final = f"{CONFIG}/timercheck"
_MAX_OP_RECORDS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait.

    Attributes:
        state: ``delivered``, ``waiting``, ``passed`` (it was due, but no copy was found), ``cancelled``,
            ``committed``, ``rolled-back``, ``checked`` (put back for another check), ``pending``.
        due_ms: Time at which a delayed or timer message is due, 0 for half messages.
        op_phy_offset: The record that marks a half message as done; None without one.
    """

    state: str
    due_ms: int = 0
    op_phy_offset: int | None = None


def wait_of(view: LogView, message: Message, later: Sequence[Message]) -> Wait | None:
    """Returns what a record waits for; None for a record that consumers read.

    Args:
        view: The store.
        message: The record.
        later: The later records of the same message, in log order.
    """
    role = role_of(message)
    if role is Role.HALF:
        return _half(view, message, later)
    if role not in (Role.DELAYED, Role.TIMER):
        return None
    due_ms = _due_ms(view, message, role)
    for number, one in enumerate(later):
        if parent_of(one, [message, *later[:number]]) is message:
            return Wait("cancelled" if role_of(one) is Role.TIMER_CANCEL else "delivered", due_ms)
    has_passed = _delay_passed(view, message) if role is Role.DELAYED else _timer_passed(view, due_ms)
    return Wait("passed" if has_passed else "waiting", due_ms)


def _due_ms(view: LogView, message: Message, role: Role) -> int:
    if role is Role.DELAYED:
        due_ms = _due_by_queue(view, message)
        if due_ms is not None:
            return due_ms
        return unit_tags_code(message.topic.encode(), message.properties_raw, message.store_timestamp_ms)
    text = message.properties.get(copy_names.TIMER_OUT_MS, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0


def _due_by_queue(view: LogView, message: Message) -> int | None:
    """Returns the due time that the broker wrote, by its ``messageDelayLevel``; None without a unit."""
    queue = view.listing.queue_files.get((message.topic, message.queue_id))
    if queue is None:
        return None
    first, units = read_units_left(view.files, queue, view.listing.geometry.queue_file_size_bytes)
    at = message.queue_offset - first
    if not 0 <= at < len(units) or units["phy_offset"][at] != message.phy_offset:
        return None
    return int(units["tags_code"][at])


def _half(view: LogView, message: Message, later: Sequence[Message]) -> Wait:
    op = _find_op(view, message)
    for one in later:
        role = role_of(one)
        if role is Role.HALF:
            return Wait("checked", 0, op)
        if role is Role.COMMITTED:
            return Wait("committed", 0, op)
    return Wait("pending" if op is None else "rolled-back", 0, op)


def _find_op(view: LogView, half: Message) -> int | None:
    """Returns the place of the op record of a half message: its body lists queue offsets of half messages."""
    queue = view.listing.queue_files.get((OP_TOPIC, half.queue_id))
    if queue is None:
        return None
    _first, units = read_units_left(view.files, queue, view.listing.geometry.queue_file_size_bytes)
    behind = units[units["phy_offset"] > half.phy_offset]["phy_offset"]
    wanted = str(half.queue_offset)
    for phy_offset in behind[:_MAX_OP_RECORDS].tolist():
        op = view.message_at(phy_offset)
        if op is not None and wanted in op.body.decode("utf-8", "replace").split(","):
            return int(phy_offset)
    return None


def _delay_passed(view: LogView, message: Message) -> bool:
    try:
        offsets = ConfigFile(view.files, view.root / DELAY_FILE).load(_delay_offsets)
    except ConfigError:
        return False
    return (offsets or {}).get(message.queue_id + 1, 0) > message.queue_offset


def _delay_offsets(value: ConfigValue) -> dict[int, int]:
    table = as_object(as_object(value, DELAY_FILE).get("offsetTable", {}), "offsetTable")
    return {
        as_int_key(level, "offsetTable"): as_int(offset, "offsetTable") for level, offset in table.items()
    }


def _timer_passed(view: LogView, due_ms: int) -> bool:
    data = read_start(view.files, view.root / TIMER_FILE, TIMER_CHECKPOINT_FILE_BYTES)
    return due_ms < decode_timer_checkpoint(data).last_read_timestamp_ms
