"""Paths of stores with globs in them, as in Hadoop: ``*``, ``?``, ``[a-c]``, ``{one,other}``.

A path that exists as it is written is not expanded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Final

from seglog.errors import NotFoundError
from seglog.spark.remote_files import locate
from seglog.spark.source.wanted.identity import check_distinct, real_place

_MAGIC: Final = re.compile(r"[*?\[{]")
_FILE_URI: Final = re.compile(r"^file:(?=/(?!/))")
"""The form in which Spark's catalog writes the paths of tables."""
_CHOICE: Final = re.compile(r"\{([^{}]*)\}")


def split_paths(text: str) -> tuple[str, ...]:
    """Returns paths that commas separate; a comma in braces is part of a path."""
    paths, depth = [""], 0
    for letter in text:
        depth += (letter == "{") - (letter == "}" and depth > 0)
        if letter == "," and not depth:
            paths.append("")
        else:
            paths[-1] += letter
    return tuple(path.strip() for path in paths if path.strip())


def expand_paths(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Returns paths without globs; paths of one glob are sorted by name.

    A store that globs match again is left out: they overlap, or a link leads to it.

    Raises:
        NotFoundError: Nothing matches a glob.
        InvalidArgumentError: A store is named twice without globs.
    """
    plain = [_FILE_URI.sub("", path) for path in paths]
    globs = {path for path in plain if _is_glob(path)}
    check_distinct(path for path in plain if path not in globs)
    places = {real_place(path) for path in plain if path not in globs}
    found: list[str] = []
    for path in plain:
        for one in _expanded(path) if path in globs else ():
            if (place := real_place(one)) not in places:
                places.add(place)
                found.append(one)
        if path not in globs:
            found.append(path)
    return tuple(found)


def may_be_glob(path: str) -> bool:
    """Returns whether a path has characters of a glob and does not exist as it is written."""
    return _MAGIC.search(path) is not None


def _is_glob(path: str) -> bool:
    if not may_be_glob(path):
        return False
    files, root = locate(path)
    return not files.exists(root)


def _expanded(path: str) -> list[str]:
    found = sorted({one for plain in _alternatives(path) for one in _matches(plain)})
    if not found:
        raise NotFoundError(
            f"no store is called like {path}",
            help="globs are *, ?, [a-c] and {a,b}; each must lead to the folder of a store",
        )
    return found


def _alternatives(path: str) -> Iterator[str]:
    """Yields a path without braces, once for each choice in them; inner braces first."""
    choice = _CHOICE.search(path)
    if choice is None:
        yield path
        return
    for word in choice.group(1).split(","):
        yield from _alternatives(path[: choice.start()] + word + path[choice.end() :])


def _matches(path: str) -> Iterator[str]:
    """Yields the folders that match a path without braces."""
    parts = path.split("/")
    first = next((at for at, part in enumerate(parts) if may_be_glob(part)), None)
    if first is None:
        files, root = locate(path)
        if files.is_dir(root):
            yield path
        return
    files, above = locate("/".join(parts[:first]) or ("/" if path.startswith("/") else "."))
    for entry in files.list_dir(above):
        # As in a shell, a star matches no name that begins with a dot.
        is_hidden = entry.name.startswith(".") and not parts[first].startswith(".")
        if entry.is_dir and not is_hidden and fnmatchcase(entry.name, parts[first]):
            yield from _matches("/".join([*parts[:first], entry.name, *parts[first + 1 :]]))
