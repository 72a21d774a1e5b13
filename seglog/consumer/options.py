"""The settings of a consumer in its signature, its help, and the error for one that it does not have.

All of it follows from :class:`~seglog.consumer.settings.ConsumerSettings`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields
from functools import cache
from inspect import Parameter, Signature
from typing import Any, Final

from seglog.consumer.settings import BOUNDS, ConsumerOptions, ConsumerSettings

_ATTRIBUTE: Final = re.compile(r"^    (\w+): (.+(?:\n {8}.+)*)", re.MULTILINE)


def check_options(consumer: str, options: Collection[str]) -> None:
    """Refuses a setting that consumers do not have.

    Args:
        consumer: What the user has called.
        options: The names that were given.

    Raises:
        TypeError: There is one, as for any call with a keyword that it does not take.
    """
    known = ConsumerOptions.__annotations__
    for name in options:
        if name not in known:
            import difflib

            near = difflib.get_close_matches(name, known, 1)
            advice = f"; did you mean {near[0]!r}?" if near else "."
            raise TypeError(f"{consumer}() has no setting {name!r}{advice} Settings: {', '.join(known)}")


def with_options(made: Signature) -> Signature:
    """Returns the signature of how a consumer is made, with each setting in place of ``**options``."""
    own = [one for one in made.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    return made.replace(parameters=[*own[1:], *_parameters()])


def arguments_text(docstring: str) -> str:
    """Returns the sections of a docstring that say what is given and what is raised."""
    _, _, found = inspect.cleandoc(docstring).partition("\nArgs:")
    return f"Args:{found}".rstrip()


def options_text() -> str:
    """Returns the section of a docstring that explains each setting: what it is, its default, its bounds."""
    texts = dict(_ATTRIBUTE.findall(inspect.cleandoc(ConsumerSettings.__doc__ or "")))
    lines = ["Settings, by keyword:"]
    for one in _parameters():
        low, high = BOUNDS.get(one.name, (None, None))
        bounds = "" if low is None else f", from {low} to {high}"
        lines.append(f"    {one.name}: {texts[one.name]} Default {one.default}{bounds}.")
    return "\n".join(lines)


@cache
def _parameters() -> tuple[Parameter, ...]:
    types: Mapping[str, Any] = ConsumerOptions.__annotations__
    return tuple(
        Parameter(
            one.name,
            Parameter.KEYWORD_ONLY,
            default=one.default if one.default_factory is MISSING else one.default_factory(),
            annotation=types[one.name].__forward_arg__,
        )
        for one in fields(ConsumerSettings)
        if one.name in types
    )
