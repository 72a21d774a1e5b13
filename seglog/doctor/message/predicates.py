"""Conditions on messages as users type them: ``key=o-1``, ``tag=fruit``, ``stored>=2026-01-01``, ``shop=x``.

A field name that is not a known one is a property. ``~`` tests whether the value contains a text.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

from seglog.errors import InvalidArgumentError
from seglog.storage.format.record import properties as props
from seglog.storage.reads import MessageRow

Condition = Callable[[MessageRow], bool]

_FORM: Final = re.compile(r"\s*([^\s=!<>~]+)\s*(!=|>=|<=|=|>|<|~)\s*(.*)", re.DOTALL)
_COMPARISONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_NUMBERS: Final[Mapping[str, Callable[[MessageRow], int]]] = {
    "queue": lambda row: row.queueId,
    "offset": lambda row: row.queueOffset,
    "retries": lambda row: row.reconsumeTimes,
    "size": lambda row: len(row.body),
    "stored": lambda row: row.storeTimestamp,
    "born": lambda row: row.bornTimestamp,
}
_TIMES: Final = ("stored", "born")
_TEXTS: Final[Mapping[str, Callable[[MessageRow], Sequence[str]]]] = {
    "key": lambda row: props.split_keys(row.named.get(props.KEYS, "")),
    "tag": lambda row: [row.named[props.TAGS]] if props.TAGS in row.named else [],
    "id": lambda row: [row.msgId, *([row.named[props.UNIQ_KEY]] if props.UNIQ_KEY in row.named else [])],
    "body": lambda row: [row.body.decode("utf-8", "replace")],
}
FIELDS: Final = (*_TEXTS, *_NUMBERS)


def parse_conditions(texts: Sequence[str]) -> Condition:
    """Returns a function that tests whether a message meets all conditions.

    Raises:
        InvalidArgumentError: A text is not a valid condition.
    """
    conditions = [_parse(text) for text in texts]
    return lambda row: all(condition(row) for condition in conditions)


def _parse(text: str) -> Condition:
    found = _FORM.fullmatch(text)
    if found is None:
        raise InvalidArgumentError(
            f"{text!r} is no condition",
            help=f"give FIELD=VALUE (or != >= <= > < ~), where FIELD is {', '.join(FIELDS)} or a property",
        )
    name, sign, value = found.groups()
    number = _NUMBERS.get(name)
    if number is not None:
        return _number(name, number, sign, value.strip())
    return _text(_TEXTS.get(name) or (lambda row: _property(row, name)), sign, value.strip(), text)


def _number(name: str, number: Callable[[MessageRow], int], sign: str, value: str) -> Condition:
    compare = _COMPARISONS.get(sign)
    if compare is None:
        raise InvalidArgumentError(f"{name} is a number: {sign} says nothing about it")
    limit = _moment_ms(value) if name in _TIMES else int(value) if value.isdigit() else None
    if limit is None:
        kind = "time such as 2026-11-21T07:46Z, or milliseconds since 1970" if name in _TIMES else "number"
        raise InvalidArgumentError(f"{name}{sign}{value}: {value!r} is no {kind}")
    return lambda row: compare(number(row), limit)


def _text(values: Callable[[MessageRow], Sequence[str]], sign: str, value: str, text: str) -> Condition:
    if sign == "=":
        return lambda row: value in values(row)
    if sign == "!=":
        return lambda row: value not in values(row)
    if sign == "~":
        return lambda row: any(value in one for one in values(row))
    raise InvalidArgumentError(f"{text!r}: texts are compared by =, != and ~")


def _property(row: MessageRow, name: str) -> Sequence[str]:
    named = row.named
    return [named[name]] if name in named else []


def _moment_ms(value: str) -> int | None:
    if value.isascii() and value.isdigit():
        return int(value)
    try:
        return round(datetime.fromisoformat(value).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        return None
