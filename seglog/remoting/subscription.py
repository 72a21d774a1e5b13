"""Which messages of a topic a consumer wants: all, those with one of some tags, or what an expression says.

A broker compares tagsCodes, which collide ("Aa" and "BB"), so the consumer compares the tags again.

Source: ``FilterAPI.java buildSubscriptionData, build``, ``SubscriptionData.java``, ``ExpressionType.java``,
``MessageSelector.java``, ``PullAPIWrapper.java processPullResult``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from seglog.arguments import as_text, shown
from seglog.errors import InvalidArgumentError
from seglog.remoting.codes import PullFlag
from seglog.storage.format.record import find_property
from seglog.storage.format.record import properties as props

ALL_TAGS: Final = "*"
TAG_TYPE: Final = "TAG"
SQL_TYPE: Final = "SQL92"
_TAGS: Final = props.TAGS.encode()
BETWEEN_TAGS: Final = "||"
_MEANT: Final = re.compile(r"\|+|,|&&")
"""What people write in place of ``||``."""


@dataclass(frozen=True, slots=True)
class SubscriptionData:
    """What a group wants of one topic, as heartbeats say it.

    Attributes:
        expression: ``*``, tags, or a condition of the type's language (``subString``).
        version: When the client made it, in ms since the epoch; the greater one holds (``subVersion``).
        expression_type: ``TAG`` or ``SQL92``.
        is_class_filter: Whether a filter server chooses, so that the broker gives all.
    """

    topic: str
    expression: str = ALL_TAGS
    version: int = 0
    expression_type: str | None = TAG_TYPE
    is_class_filter: bool = False

    @property
    def choice(self) -> tuple[str, str]:
        """What two clients of a group must agree in: the language and what is said in it."""
        return TAG_TYPE if is_tag_type(self.expression_type) else str(self.expression_type), self.expression


def is_tag_type(expression_type: str | None) -> bool:
    """Returns whether an expression names tags; that is so as well where no type is said."""
    return expression_type in (None, "", TAG_TYPE)


class PullForm(NamedTuple):
    """What the header of a pull says of a subscription.

    Attributes:
        subscription: The expression; None where the broker is to take what the heartbeat said.
        expression_type: Its language.
        sub_version: Of the subscription, as in the heartbeat.
        flags: What of it belongs into ``sys_flag``.
    """

    subscription: str | None
    expression_type: str
    sub_version: int
    flags: PullFlag


@dataclass(frozen=True, slots=True)
class Subscription:
    """The filter of a topic: tags, or an SQL92 condition that the broker evaluates.

    Attributes:
        expression: As it was given, ``*`` for an empty one.
        tags: None for all messages that the broker gives.
        expression_type: ``TAG`` or ``SQL92``.
    """

    expression: str
    tags: frozenset[str] | None
    expression_type: str = TAG_TYPE
    _stored_tags: frozenset[bytes] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # A tag with half a surrogate pair stays one that no message has: those are stored as UTF-8.
        tags = None if self.tags is None else {tag.encode("utf-8", "surrogatepass") for tag in self.tags}
        object.__setattr__(self, "_stored_tags", None if tags is None else frozenset(tags))

    @classmethod
    def by_sql(cls, condition: str) -> Subscription:
        """Returns the subscription to messages that meet a condition, such as ``price > 5``.

        The broker compiles it, and refuses one that it does not understand.

        Raises:
            InvalidArgumentError: The condition is empty.
        """
        if not as_text("condition", condition).strip():
            raise InvalidArgumentError(
                "the SQL92 condition of a subscription is empty",
                help='write a condition such as "price > 5", or subscribe to *',
            )
        return cls(condition, None, SQL_TYPE)

    @property
    def wants_all(self) -> bool:
        """Whether it wants all that a broker gives."""
        return self._stored_tags is None

    def wants(self, properties_raw: bytes) -> bool:
        """Returns whether a message that the broker gave is wanted: codes of tags collide, tags do not.

        Of SQL92 the broker's word holds, as in Java.

        Args:
            properties_raw: Of the message, as stored; of one of an inner batch its own.
        """
        return self._stored_tags is None or find_property(properties_raw, _TAGS) in self._stored_tags

    def in_heartbeat(self, topic: str, version: int) -> SubscriptionData:
        """Returns what a heartbeat says of it.

        Args:
            topic: Of which it is.
            version: When the client subscribed, in ms since the epoch.
        """
        return SubscriptionData(topic, self.expression, version, self.expression_type)

    def in_pull(self, version: int, *, is_posted: bool = False) -> PullForm:
        """Returns what the header of a pull says of it.

        Args:
            version: As in the heartbeat.
            is_posted: Whether each pull repeats the expression (``postSubscriptionWhenPull``), so that the
                broker need not have had the heartbeat.
        """
        expression = self.expression if is_posted else None
        flags = PullFlag.SUBSCRIPTION if is_posted else PullFlag(0)
        return PullForm(expression, self.expression_type, version, flags)


def probably_meant(expression: str) -> str | None:
    """Returns what ``paid | refunded``, ``a,b`` and ``a && b`` were probably to say, which each are one tag.

    Args:
        expression: Of tags.

    Returns:
        None where nothing in it looks so.
    """
    if not any(_MEANT.search(tag) for tag in expression.split(BETWEEN_TAGS)):
        return None
    tags = dict.fromkeys(tag for piece in _MEANT.split(expression) if (tag := piece.strip()))
    return f" {BETWEEN_TAGS} ".join(tags) or None


def parse_subscription(expression: str | None) -> Subscription:
    """Returns what ``*`` or ``TagA || TagB`` means.

    Raises:
        InvalidArgumentError: Nothing but separators and blanks; RocketMQ lets blanks pass and match nothing.
    """
    if expression is not None:
        as_text("expression", expression)
    if not expression or expression == ALL_TAGS:
        return Subscription(ALL_TAGS, None)
    tags = frozenset(tag for piece in expression.split(BETWEEN_TAGS) if (tag := piece.strip()))
    if not tags:
        raise InvalidArgumentError(
            f"{shown(expression)} names no tag", help="subscribe to * or to tags such as 'TagA || TagB'"
        )
    return Subscription(expression, tags)
