"""Option types for durations and sizes as users type them: 36h, 7d, 500MiB, 2g."""

from __future__ import annotations

import re
from typing import Final

import click
from typing_extensions import override

_AMOUNT: Final = re.compile(r"([0-9]{1,15})\s*([a-zA-Z]*)")
_DURATIONS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIZES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class Duration(click.ParamType[int]):
    """Milliseconds, from a number with ms, s, m, h or d."""

    name = "duration"

    @override
    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = _AMOUNT.fullmatch(str(value).strip())
        if found is None or found[2].lower() not in _DURATIONS:
            units = "a whole number and ms, s, m, h or d"
            self.fail(f"{value!r} is no duration: expected {units}, such as 30s or 7d", param, ctx)
        return int(found[1]) * _DURATIONS[found[2].lower()]


class Size(click.ParamType[int]):
    """Bytes, from a number with k, m, g or t, or KiB and so on; all are powers of 1024."""

    name = "size"

    @override
    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = _AMOUNT.fullmatch(str(value).strip())
        unit = found[2].lower().removesuffix("b").removesuffix("i") if found is not None else "?"
        if found is None or unit not in _SIZES:
            self.fail(f"{value!r} is no size such as 500MiB or 2g", param, ctx)
        return int(found[1]) * _SIZES[unit]


def of_topics(values: tuple[str, ...], kind: click.ParamType[int], option: str) -> dict[str, int]:
    """Returns amounts by topic from texts such as ``Orders=7d``.

    Raises:
        BadParameter: A text is not of this form.
    """
    found: dict[str, int] = {}
    for text in values:
        topic, equals, amount = text.rpartition("=")
        if not equals or not topic:
            raise click.BadParameter(f"{text!r} is no TOPIC={kind.name.upper()}", param_hint=f"'{option}'")
        found[topic] = int(kind(amount))
    return found
