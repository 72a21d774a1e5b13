"""Attributes of topics and groups: their names, valid values, and changes.

A change is ``+name=value,-name`` and so on. Only attributes that RocketMQ knows can be set, and some only
when the topic is created; other attributes in a file are kept.

Source: ``AttributeParser.java``, ``AttributeUtil.java``, ``TopicAttributes.java``,
``SubscriptionGroupAttributes.java``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from seglog.arguments import MAX_I64
from seglog.errors import InvalidArgumentError
from seglog.storage.format.config import ConfigValue


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute that can be set.

    Attributes:
        values: Its valid values; empty if it is an integer.
        least: The least number.
        most: The greatest number.
        is_changeable: Whether it can be set or changed after the topic is created.
    """

    values: frozenset[str] = frozenset()
    least: int = 0
    most: int = MAX_I64
    is_changeable: bool = True

    def problem(self, value: str) -> str | None:
        """Returns why a value is not valid, None if it is."""
        if self.values:
            return (
                None if value in self.values else f"value is not in set: [{', '.join(sorted(self.values))}]"
            )
        if value.removeprefix("-").isdecimal() and self.least <= int(value) <= self.most:
            return None
        return f"value is not in range({self.least}, {self.most})"


Attributes = Mapping[str | int, ConfigValue]

TOPIC_ATTRIBUTES: Final[Mapping[str, Attribute]] = {
    "queue.type": Attribute(frozenset({"BatchCQ", "SimpleCQ"}), is_changeable=False),
    "cleanup.policy": Attribute(frozenset({"DELETE", "COMPACTION"}), is_changeable=False),
    "message.type": Attribute(
        frozenset({"UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "PRIORITY", "MIXED"})
    ),
    "reserve.time": Attribute(least=-1),
}
GROUP_ATTRIBUTES: Final[Mapping[str, Attribute]] = {"priority.factor": Attribute(most=100)}


def alter_attributes(
    attributes: Attributes | None, changes: str | None, known: Mapping[str, Attribute] = TOPIC_ATTRIBUTES
) -> Attributes:
    """Returns attributes after changes.

    Args:
        attributes: As they are; None for something that is being made.
        changes: ``+name=value,-name`` and so on.
        known: Which can be set.

    Raises:
        InvalidArgumentError: A change has another form, an unknown attribute or an invalid value; the message
            is in RocketMQ's words.
    """
    return _alter(attributes, _parse(changes or ""), known)


def alter_named_attributes(
    attributes: Attributes | None, changes: Attributes, known: Mapping[str, Attribute]
) -> Attributes:
    """Returns attributes of a group or topic after the changes that the body of a request carries.

    Args:
        attributes: As they are; None for something that is being made.
        changes: Keys ``+name`` with the new value, or ``-name``; other attributes stay.
        known: Which can be set.

    Raises:
        InvalidArgumentError: As :func:`alter_attributes`.
    """
    found: dict[str, str | None] = {}
    for key, value in changes.items():
        sign, name = str(key)[:1], str(key)[1:]
        if attributes is not None and sign not in ("+", "-"):
            raise InvalidArgumentError(f"wrong format key: {name}")
        if name in found:
            raise InvalidArgumentError(f"key duplication: {name}")
        found[name] = str(value) if sign == "+" else None
    return _alter(attributes, found, known)


def _alter(
    attributes: Attributes | None, changes: Mapping[str, str | None], known: Mapping[str, Attribute]
) -> Attributes:
    altered = dict(attributes or {})
    for name, value in changes.items():
        if value is None and attributes is None:
            raise InvalidArgumentError(f"only add attribute is supported while creating topic. key: {name}")
        if value is None and name not in altered:
            raise InvalidArgumentError(f"attempt to delete a nonexistent key: {name}")
        attribute = known.get(name)
        if attribute is None:
            raise InvalidArgumentError(f"unsupported key: {name}")
        if attributes is not None and not attribute.is_changeable:
            raise InvalidArgumentError(f"attempt to update an unchangeable attribute. key: {name}")
        problem = None if value is None else attribute.problem(value)
        if problem is not None:
            raise InvalidArgumentError(problem)
        if value is None:
            del altered[name]
        else:
            altered[name] = value
    return altered


def _parse(changes: str) -> dict[str, str | None]:
    """Returns the new value of each attribute, None for one to remove."""
    found: dict[str, str | None] = {}
    for change in changes.split(",") if changes else ():
        name, equals, value = change[1:].partition("=")
        if equals and not (change.startswith("+") and name):
            raise InvalidArgumentError(f"add/alter attribute format is wrong: {change.partition('=')[0]}")
        if not equals and not (change.startswith("-") and name):
            raise InvalidArgumentError(f"delete attribute format is wrong: {change}")
        if name in found:
            raise InvalidArgumentError(f"key duplication: {change.partition('=')[0]}")
        found[name] = value if equals else None
    return found
