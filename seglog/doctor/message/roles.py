"""The role of a record of a message: the message itself, a half, a delayed record, a retry, a dead letter."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from seglog.doctor.message import copy_names
from seglog.storage.format.names import DLQ_PREFIX, HALF_TOPIC, PARK_PREFIX, RETRY_PREFIX, SCHEDULE_TOPIC
from seglog.storage.format.record import Message
from seglog.storage.format.record import properties as props
from seglog.storage.format.record import sys_flag as flags
from seglog.storage.format.system_names import TIMER_TOPIC


class Role(enum.Enum):
    """Kinds of records; the values are used in JSON."""

    MESSAGE = "message"
    """A message in the topic that consumers read."""
    HALF = "half"
    """A half message of a transaction without an outcome."""
    COMMITTED = "committed"
    """The message of a transaction that was committed."""
    PREPARED = "prepared"
    """A message of a transaction, in its own topic, as stores and replicas of 3.x have it."""
    ROLLED_BACK = "rolled-back"
    """The record of the rollback of a prepared message."""
    DELAYED = "delayed"
    """A message that waits in the delay topic."""
    TIMER = "timer"
    """A message that waits in the timer wheel."""
    TIMER_CANCEL = "timer-cancel"
    """A record that removes a message from the timer wheel."""
    RETRY = "retry"
    """A copy for a group that could not consume the message."""
    DEAD = "dead"
    """A copy for a group that gave up."""
    PARKED = "parked"
    """A copy that ``seglog park`` made for a group."""


_BY_TOPIC = {
    SCHEDULE_TOPIC: Role.DELAYED,
    TIMER_TOPIC: Role.TIMER,
    HALF_TOPIC: Role.HALF,
}
_BY_PREFIX = {RETRY_PREFIX: Role.RETRY, DLQ_PREFIX: Role.DEAD, PARK_PREFIX: Role.PARKED}
_BY_FLAG = {
    flags.TRANSACTION_PREPARED: Role.PREPARED,
    flags.TRANSACTION_COMMIT: Role.COMMITTED,
    flags.TRANSACTION_ROLLBACK: Role.ROLLED_BACK,
}
_HOPS = (Role.DELAYED, Role.TIMER)


def role_of(message: Message) -> Role:
    """Returns the role of a record."""
    found = _BY_TOPIC.get(message.topic)
    if found is Role.TIMER and message.properties.get(copy_names.TIMER_DEL_UNIQKEY):
        return Role.TIMER_CANCEL
    if found is not None:
        return found
    for prefix, role in _BY_PREFIX.items():
        if message.topic.startswith(prefix):
            return role
    return _BY_FLAG.get(message.sys_flag & flags.TRANSACTION_MASK, Role.MESSAGE)


def group_of(message: Message) -> str | None:
    """Returns the group that a retry, dead or parked copy is for; None for other records."""
    named = message.properties.get(copy_names.ORIGIN_GROUP)
    topic = message.topic
    if role_of(message) in _HOPS:
        topic = message.properties.get(props.REAL_TOPIC, "")
    for prefix in _BY_PREFIX:
        if topic.startswith(prefix):
            return named or topic.removeprefix(prefix)
    return None


def parent_of(message: Message, earlier: Sequence[Message]) -> Message | None:
    """Returns the record from which a record was made, None if it is the first or unknown.

    Args:
        message: The record.
        earlier: The earlier records of the same message, in log order.
    """
    role = role_of(message)
    newest = earlier[::-1]
    if role in (Role.COMMITTED, Role.ROLLED_BACK):
        halves = [one for one in newest if role_of(one) in (Role.HALF, Role.PREPARED)]
        named = [one for one in halves if one.phy_offset == message.prepared_transaction_offset]
        return next(iter(named or halves), None)
    if role is Role.HALF:
        return next((one for one in newest if role_of(one) is Role.HALF), None)
    if role is Role.PARKED:
        wanted = message.properties.get(copy_names.PARKED_ID)
        return next((one for one in newest if one.message_id == wanted), None)
    hop = next((one for one in newest if _leads_to(one, message)), None)
    if hop is not None:
        return hop
    group = group_of(message)
    if group is not None:
        tried = [one for one in newest if group_of(one) == group and role_of(one) not in _HOPS]
        consumed = [one for one in newest if role_of(one) in (Role.MESSAGE, Role.COMMITTED)]
        return next(iter(tried or consumed), None)
    if role is Role.TIMER_CANCEL:
        return next((one for one in newest if role_of(one) is Role.TIMER), None)
    # A timer message that was rolled over in the wheel, or a message that its producer sent again.
    same = [one for one in newest if (one.topic, role_of(one)) == (message.topic, role)]
    return next(iter(same), None)


def _leads_to(hop: Message, message: Message) -> bool:
    """Returns whether the due time of a delayed record is the time at which a message was put."""
    if role_of(hop) not in _HOPS or hop.reconsume_times != message.reconsume_times:
        return False
    target = (message.topic, str(message.queue_id))
    return (hop.properties.get(props.REAL_TOPIC), hop.properties.get(props.REAL_QUEUE_ID)) == target
