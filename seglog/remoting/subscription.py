"""Which messages of a topic a consumer wants: all, or those with one of some tags.

A broker compares tagsCodes, which collide ("Aa" and "BB"), so the consumer compares the tags again.

Source: ``FilterAPI.java buildSubscriptionData``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from seglog.errors import InvalidArgumentError

ALL_TAGS: Final = "*"
TAG_TYPE: Final = "TAG"


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
    if not expression or expression == ALL_TAGS:
        return Subscription(ALL_TAGS, None)
    tags = frozenset(tag for piece in expression.split("||") if (tag := piece.strip()))
    if not tags:
        raise InvalidArgumentError(
            f"{expression!r} names no tag", help="subscribe to * or to tags such as 'TagA || TagB'"
        )
    return Subscription(expression, tags)
