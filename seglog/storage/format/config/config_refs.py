"""fastjson's ``{"$ref":"$.path"}``: a value that stands at another place of the same file.

fastjson writes an object that it met before as the path to where it met it. Names in a path have a
backslash before everything but letters and digits; ``[n]`` is an item of a list or the entry of an integer
key. References to what contains them (``$``, ``@`` and ``..`` always do) would make endless values, which
no config file holds: they are refused, and so is what would grow without measure when written out.

Source: fastjson 1.2.83 ``SerialContext.java toString``, ``DefaultJSONParser.java``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from seglog.errors import CorruptError

if TYPE_CHECKING:
    from seglog.storage.format.config.config_value import ConfigValue

REF: Final = "$ref"
MAX_HEIGHT: Final = 64
"""Levels of a value whose references are resolved."""
MAX_GROWTH: Final = 8
"""So many times its own characters a text may have with every reference written out."""
GROWN_CHARACTERS: Final = 1 << 16
"""So many it may have in any case."""

_PATH: Final = re.compile(r"\$(?:\.(?:\\.|[^\\.\[])+|\[-?[0-9]{1,18}\])+", re.DOTALL)
_STEP: Final = re.compile(r"\.((?:\\.|[^\\.\[])+)|\[(-?[0-9]+)\]", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_SCALAR_CHARACTERS: Final = 8
"""Of a number or a word, roughly."""


def resolve_refs(root: ConfigValue, text_characters: int) -> ConfigValue:
    """Returns the value with every reference replaced by what it stands for, which is shared, not copied.

    Args:
        root: The value of a text.
        text_characters: How long the text is.

    Raises:
        CorruptError: A reference to nothing or to what contains it, or a value too large or too deep.
    """
    resolver = _Resolver(root)
    resolved = resolver.resolve(root, 0)
    most = max(GROWN_CHARACTERS, MAX_GROWTH * text_characters)
    if resolved.characters > most:
        expected = f"at most {most} characters with all references written out"
        raise _damage(expected, f"{resolved.characters} characters")
    return resolved.value


class _Resolved(NamedTuple):
    """A value without references.

    Attributes:
        height: Its levels.
        characters: What it takes when it is written out, about.
    """

    value: ConfigValue
    height: int
    characters: int


class _Resolver:
    """Resolves each container once, so references cost nothing until the value is written out."""

    def __init__(self, root: ConfigValue) -> None:
        self._root = root
        self._done: dict[int, _Resolved | None] = {}  # None while the container is being resolved

    def resolve(self, value: ConfigValue, depth: int) -> _Resolved:
        if isinstance(value, str) or not isinstance(value, Mapping | Sequence):
            return _Resolved(value, 0, len(value) + 2 if isinstance(value, str) else _SCALAR_CHARACTERS)
        if depth > MAX_HEIGHT:
            raise _damage(f"at most {MAX_HEIGHT} levels", value)
        if id(value) in self._done:
            found = self._done[id(value)]
            if found is None:
                raise _damage("a reference to something else than its container", value)
            return found
        self._done[id(value)] = None
        path = _path_of(value)
        if path is not None:
            resolved = self.resolve(self._find(path), depth + 1)
        elif isinstance(value, Mapping):
            parts = {key: self.resolve(item, depth + 1) for key, item in value.items()}
            names = sum(len(key) if isinstance(key, str) else _SCALAR_CHARACTERS for key in value)
            resolved = _joined({key: part.value for key, part in parts.items()}, list(parts.values()), names)
        else:
            items = [self.resolve(item, depth + 1) for item in value]
            resolved = _joined([part.value for part in items], items, 0)
        self._done[id(value)] = resolved
        return resolved

    def _find(self, path: str) -> ConfigValue:
        if not _PATH.fullmatch(path):
            raise _damage("a path that begins with $ and does not lead back to itself", path)
        at = self._root
        for step in _STEP.finditer(path):
            keys: list[str | int] = [_ESCAPE.sub(r"\1", step[1])] if step[1] else [int(step[2]), step[2]]
            if isinstance(at, Mapping):
                key = next((key for key in keys if key in at), None)
                if key is None:
                    raise _damage("a path to a value", path)
                at = at[key]
            elif isinstance(at, list) and isinstance(keys[0], int) and 0 <= keys[0] < len(at):
                at = at[keys[0]]
            else:
                raise _damage("a path to a value", path)
        return at


def _joined(value: ConfigValue, parts: list[_Resolved], key_characters: int) -> _Resolved:
    height = 1 + max((part.height for part in parts), default=0)
    if height > MAX_HEIGHT:
        raise _damage(f"at most {MAX_HEIGHT} levels", f"{height}")
    return _Resolved(value, height, 2 + key_characters + sum(part.characters + 1 for part in parts))


def _path_of(value: ConfigValue) -> str | None:
    """Returns the path of a reference, None for any other value."""
    if isinstance(value, Mapping) and len(value) == 1:
        path = value.get(REF)
        return path if isinstance(path, str) else None
    return None


def _damage(expected: str, found: object) -> CorruptError:
    return CorruptError("config-ref", expected=expected, found=repr(found)[:80])
