"""The folders of a log as a broker's configuration states them.

RocketMQ creates the file with number n of a log in folder ``n % count`` of those that it may write to, in the
order of their paths as text, and reads files from all of them. The paths may be of another machine, or
of another place of the store: they are told apart by what they lead to, then by their last name.

Source: ``MessageStoreConfig.java``, ``MultiPathMappedFileQueue.java tryCreateMappedFile``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from seglog.errors import CorruptError, UnsupportedStoreError
from seglog.storage.files.files import Files
from seglog.storage.format.config.java_properties import parse_java_properties
from seglog.storage.format.names import COMMIT_LOG
from seglog.text import shell_text

LOG_PATHS: Final = "storePathCommitLog"
READ_ONLY_PATHS: Final = "readOnlyCommitLogStorePaths"
CONF_FILE: Final = "broker.conf"
"""A broker's configuration in its store states the folders of the log to every command."""
_COMMA: Final = ","
"""RocketMQ's separator, unless the system property ``rocketmq.broker.multiPathSplitter`` has another."""
_OTHER_SEPARATOR: Final = re.compile(r"(?<=[^:;|])[:;|](?=/)")
"""Another one is seen by the root that follows it: no configuration file names it."""


@dataclass(frozen=True, slots=True)
class LogPaths:
    """The folders of a log as a configuration states them.

    Attributes:
        paths: All of them, as written, each once, in RocketMQ's order.
        read_only: Those in which no file is created.
        where: The configuration, for messages.
    """

    paths: tuple[str, ...]
    read_only: frozenset[str]
    where: str


@dataclass(frozen=True, slots=True)
class PlacedFolders:
    """The folders of a log in a store, in RocketMQ's order.

    Attributes:
        names: All of them, relative to the store.
        writable: Those in which new files are created.
    """

    names: tuple[str, ...]
    writable: tuple[str, ...]


def stated_log_paths(settings: Mapping[str, str], where: str) -> LogPaths | None:
    """Returns the folders of the log that a configuration states, None if it states none.

    Args:
        settings: Its names and values.
        where: The configuration, for messages.
    """
    paths = _split(settings.get(LOG_PATHS, ""))
    if not paths:
        return None
    # RocketMQ asks for folders to read only where it has several to write to.
    read_only = _split(settings.get(READ_ONLY_PATHS, "")) if len(paths) > 1 else []
    return LogPaths(tuple(sorted({*paths, *read_only})), frozenset(read_only), where)


def parse_log_paths(data: bytes, where: str) -> LogPaths | None:
    """Returns the folders of the log that a configuration file states, None if it states none."""
    with suppress(CorruptError):
        return stated_log_paths(parse_java_properties(data), where)
    return None


def _split(text: str) -> list[str]:
    parts = text.split(_COMMA)
    if len(parts) == 1:
        parts = _OTHER_SEPARATOR.split(text)
    return [part.strip() for part in parts if part.strip()]


def place_log_paths(files: Files, root: Path, stated: LogPaths, found: Iterable[str]) -> PlacedFolders:
    """Returns which folders of a store a configuration means.

    Args:
        files: Where the store is; shows each folder as it is.
        root: The store directory.
        stated: The folders that the configuration states.
        found: Folders of the store that hold files of its log, relative to it; ``commitlog`` if it does.

    Raises:
        UnsupportedStoreError: It states a folder that is not in the store, or does not state one of those
            found.
    """
    found = tuple(found)
    places: dict[str, str] = {}
    last_names = Counter(PurePosixPath(path).name for path in stated.paths)
    for path in stated.paths:
        folder = _below(path, root) or _same(path, root, found)
        name = PurePosixPath(path).name
        if folder is None and last_names[name] == 1 and name and (name in found or files.is_dir(root / name)):
            folder = name
        if folder is not None:
            places[path] = folder
    if len(stated.paths) == 1 and not places and found in ((COMMIT_LOG,), ()):
        places[stated.paths[0]] = COMMIT_LOG  # a copy of a store keeps the configuration of its first place
    where = f"{stated.where} ({LOG_PATHS}, {READ_ONLY_PATHS})"
    for path in stated.paths:
        if path not in places:
            raise UnsupportedStoreError(
                f"{where} states {path} as a folder of the log, which is not in {root}",
                help=f"nothing was changed; make a link to it in {shell_text(root)}, named as its last"
                f" folder, and give --follow with that name; or write {LOG_PATHS} with the names that the"
                " folders have here",
            )
    unstated = sorted({*found} - {*places.values()})
    if unstated:
        raise UnsupportedStoreError(
            f"{where} does not state {', '.join(unstated)}, where files of the log of {root} are",
            help="nothing was changed; state all folders of the log as its broker has them",
        )
    names = tuple(places[path] for path in stated.paths)
    writable = tuple(places[path] for path in stated.paths if path not in stated.read_only)
    return PlacedFolders(names, writable or names)


def _below(path: str, root: Path) -> str | None:
    """Returns a path as the store has it, None if it is not below the store."""
    parts = PurePosixPath(path)
    if parts.is_absolute():
        with suppress(ValueError):
            parts = parts.relative_to(root)
    if parts.is_absolute() or ".." in parts.parts or not parts.parts:
        return None
    return str(parts)


def _same(path: str, root: Path, found: Iterable[str]) -> str | None:
    """Returns the folder of the log that a path of this machine leads to, None without one."""
    for folder in found:
        with suppress(OSError):
            if Path(path).samefile(root / folder):
                return folder
    return None
