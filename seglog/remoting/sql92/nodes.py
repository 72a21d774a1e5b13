"""The parts of an expression: what each is for a message, and what may not be put together.

A truth value is True, False or None for unknown, and :class:`IncomparableError` ends everything. ``AND`` and
``OR`` look at their parts in order and stop at the first that decides, so a part after it can do no harm.

Source: ``LogicExpression.java``, ``ComparisonExpression.java``, ``UnaryExpression.java``,
``ConstantExpression.java``.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from seglog.errors import InvalidArgumentError
from seglog.remoting.sql92.values import Long, Properties, Value, compare, compare_ordered

Evaluate: TypeAlias = Callable[[Properties], Value]

MAX_DEPTH: Final = 200
"""Parts within parts; RocketMQ ends with a stack overflow somewhere beyond."""


class Kind(enum.Enum):
    """What is known of a part before there is a message."""

    PROPERTY = "a property"
    CONSTANT = "a constant"
    TRUTH_CONSTANT = "a truth value"
    TRUTH = "a condition"
    NUMBER = "a negated number"


CONSTANTS: Final = (Kind.CONSTANT, Kind.TRUTH_CONSTANT)
TRUTHS: Final = (Kind.TRUTH, Kind.TRUTH_CONSTANT)


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an expression.

    Attributes:
        evaluate: What it is for a message with some properties.
        kind: What is known of it.
        value: Of a constant.
        names: Of the properties that it looks at.
        depth: Parts within it, the deepest.
    """

    evaluate: Evaluate
    kind: Kind
    value: Value = None
    names: frozenset[str] = frozenset()
    depth: int = 1


def new_property(name: str) -> Node:
    """Returns the value of a property, unknown where the message has none of that name."""
    return Node(lambda properties: properties.get(name), Kind.PROPERTY, names=frozenset((name,)))


def new_constant(value: Value) -> Node:
    """Returns a value; TRUE, FALSE and NULL are conditions too."""
    is_truth = value is None or isinstance(value, bool)
    return Node(lambda _properties: value, Kind.TRUTH_CONSTANT if is_truth else Kind.CONSTANT, value)


def negated(right: Node) -> Node:
    """Returns minus a number; unknown for anything else, strings that are numbers included."""

    def evaluate(properties: Properties) -> Value:
        value = right.evaluate(properties)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return Long(-value) if isinstance(value, Long) else -value

    return _made_of(evaluate, Kind.NUMBER, right)


def inverted(right: Node) -> Node:
    """Returns NOT of a condition.

    Raises:
        InvalidArgumentError: It is none.
    """
    condition = as_condition(right)

    def evaluate(properties: Properties) -> Value:
        truth = condition.evaluate(properties)
        return None if truth is None else not truth

    return _made_of(evaluate, Kind.TRUTH, condition)


def as_condition(node: Node) -> Node:
    """Returns a part as a condition; a property alone is never true, because it is a string.

    Raises:
        InvalidArgumentError: It is a string or a number.
    """
    if node.kind in TRUTHS:
        return node
    if node.kind is not Kind.PROPERTY:
        raise InvalidArgumentError(f"{node.kind.value} is no condition")

    def evaluate(properties: Properties) -> Value:
        return None if node.evaluate(properties) is None else False

    return _made_of(evaluate, Kind.TRUTH, node)


def conjunction(parts: Sequence[Node]) -> Node:
    """Returns AND of two conditions or more: false if one is, else unknown if one is.

    Raises:
        InvalidArgumentError: One is no condition.
    """
    return _junction(parts, decides=False)


def disjunction(parts: Sequence[Node]) -> Node:
    """Returns OR of two conditions or more: true if one is, else unknown if one is.

    Raises:
        InvalidArgumentError: One is no condition.
    """
    return _junction(parts, decides=True)


def equal(left: Node, right: Node) -> Node:
    """Returns whether two values are equal; unknown if the left one is, false if only the right one is.

    Raises:
        InvalidArgumentError: One is NULL, or a truth value is compared with a constant that is none.
    """
    for node in (left, right):
        if node.kind in CONSTANTS and node.value is None:
            raise InvalidArgumentError("NULL equals nothing", help="write IS NULL or IS NOT NULL")
    if left.kind is Kind.TRUTH_CONSTANT and right.kind is Kind.CONSTANT:
        raise InvalidArgumentError(f"{left.value} cannot be compared with {right.value!r}")
    return _equal(left, right)


def is_null(left: Node) -> Node:
    """Returns whether a value is unknown, which itself is always known."""
    return _equal(left, new_constant(None))


def ordered(left: Node, right: Node, holds: Callable[[int], bool]) -> Node:
    """Returns whether two values are in some order.

    Args:
        left: A property or a number.
        right: A property or a number.
        holds: Whether a comparison's outcome is the order wanted.

    Raises:
        InvalidArgumentError: One is a string or a condition.
    """
    for node in (left, right):
        is_number = isinstance(node.value, int | float) and not isinstance(node.value, bool)
        if node.kind in TRUTHS or (node.kind in CONSTANTS and not is_number):
            raise InvalidArgumentError(f"{node.kind.value} has no order")

    def evaluate(properties: Properties) -> Value:
        value = left.evaluate(properties)
        if value is None:
            return None
        other = right.evaluate(properties)
        return None if other is None else holds(compare_ordered(value, other))

    return _made_of(evaluate, Kind.TRUTH, left, right)


def between(value: Node, low: Node, high: Node) -> Node:
    """Returns whether a value is within bounds, which belong to it.

    Raises:
        InvalidArgumentError: As :func:`ordered`, or the bounds are constants in the wrong order.
    """
    parts = ordered(value, low, lambda order: order >= 0), ordered(value, high, lambda order: order <= 0)
    if low.value is not None and high.value is not None and compare(high.value, low.value) < 0:
        raise InvalidArgumentError(f"nothing is between {low.value} and {high.value}")
    return conjunction(parts)


def outside(value: Node, low: Node, high: Node) -> Node:
    """Returns NOT BETWEEN: whether a value is below or above bounds.

    Raises:
        InvalidArgumentError: As :func:`ordered`.
    """
    return disjunction(
        (ordered(value, low, lambda order: order < 0), ordered(value, high, lambda order: order > 0))
    )


def one_of(value: Node, texts: Sequence[str], *, is_in: bool) -> Node:
    """Returns whether a property is one of some strings, or is none of them; unknown if it is absent.

    Raises:
        InvalidArgumentError: Something else than a property is asked about.
    """
    if value.kind is not Kind.PROPERTY:
        raise InvalidArgumentError(f"IN takes a property, and {value.kind.value} is none")
    wanted = frozenset(texts)

    def evaluate(properties: Properties) -> Value:
        found = value.evaluate(properties)
        return None if found is None else (found in wanted) is is_in

    return _made_of(evaluate, Kind.TRUTH, value)


def searched(value: Node, text: str, has: Callable[[str, str], bool], *, is_found: bool) -> Node:
    """Returns whether a string has some text in a place, or has not; never unknown.

    Args:
        value: False for all that is no string, negated or not.
        text: What is looked for; if it is empty the answer is false, negated or not.
        has: Whether the first has the second.
        is_found: What is wanted.
    """

    def evaluate(properties: Properties) -> Value:
        found = value.evaluate(properties)
        return bool(text) and isinstance(found, str) and has(found, text) is is_found

    return _made_of(evaluate, Kind.TRUTH, value)


def _equal(left: Node, right: Node) -> Node:
    def evaluate(properties: Properties) -> Value:
        value, other = left.evaluate(properties), right.evaluate(properties)
        if value is None:
            return True if other is None else None
        return other is not None and compare(value, other) == 0

    return _made_of(evaluate, Kind.TRUTH, left, right)


def _junction(parts: Sequence[Node], *, decides: bool) -> Node:
    conditions = tuple(map(as_condition, parts))
    steps = tuple(condition.evaluate for condition in conditions)

    def evaluate(properties: Properties) -> Value:
        truth: Value = not decides
        for step in steps:
            found = step(properties)
            if found is decides:
                return decides
            if found is None:
                truth = None
        return truth

    return _made_of(evaluate, Kind.TRUTH, *conditions)


def _made_of(evaluate: Evaluate, kind: Kind, *parts: Node) -> Node:
    depth = 1 + max(part.depth for part in parts)
    if depth > MAX_DEPTH:
        raise InvalidArgumentError(f"an expression nests at most {MAX_DEPTH} parts")
    return Node(evaluate, kind, None, frozenset().union(*(part.names for part in parts)), depth)
