"""Which messages of a topic a consumer wants: all, those with one of some tags, or what an expression says.

A broker compares tagsCodes, which collide ("Aa" and "BB"), so the consumer compares the tags again.

Source: ``FilterAPI.java buildSubscriptionData``, ``SubscriptionData.java``, ``ExpressionType.java``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from seglog.arguments import as_text
from seglog.errors import InvalidArgumentError

ALL_TAGS: Final = "*"
TAG_TYPE: Final = "TAG"
SQL_TYPE: Final = "SQL92"


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


@dataclass(frozen=True, slots=True)
class Subscription:
    """A parsed tag expression.

    Attributes:
        expression: As it was given, ``*`` for an empty one.
        tags: None for all messages.
    """

    expression: str
    tags: frozenset[str] | None


def parse_subscription(expression: str | None) -> Subscription:
    """Returns what ``*`` or ``TagA || TagB`` means.

    Raises:
        InvalidArgumentError: Nothing but separators and blanks; RocketMQ lets blanks pass and match nothing.
    """
    if expression is not None:
        as_text("expression", expression)
    if not expression or expression == ALL_TAGS:
        return Subscription(ALL_TAGS, None)
    tags = frozenset(tag for piece in expression.split("||") if (tag := piece.strip()))
    if not tags:
        raise InvalidArgumentError(
            f"{expression!r} names no tag", help="subscribe to * or to tags such as 'TagA || TagB'"
        )
    return Subscription(expression, tags)
