"""The settings at startup: RocketMQ's own configuration file, and single settings that override it.

Unknown names are reported with the nearest known one; names that RocketMQ knows but that have no effect here
are reported too. A path is refused, as it is in requests: all files are in the store directory.

Source: ``BrokerStartup.java``, ``MixAll.java properties2Object``.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

from seglog.arguments import refusal
from seglog.broker.settings.config import BrokerConfig
from seglog.broker.settings.java_keys import (
    BROKER_IP,
    CHANGEABLE,
    LISTEN_PORT,
    OPENED_WITH,
    REFUSED,
    is_refused,
    read_count,
    read_value,
)
from seglog.broker.settings.rocketmq_keys import ROCKETMQ_KEYS
from seglog.errors import CorruptError, InvalidArgumentError
from seglog.storage.directory import (
    LOG_PATHS,
    QUEUE_FILE,
    READ_ONLY_PATHS,
    SEGMENT,
    LogPaths,
    StoreGeometry,
    check_geometry,
    stated_log_paths,
)
from seglog.storage.format.config import numbered_java_properties

STORE_PATH: Final = "storePathRootDir"
WAITS: Final[Mapping[str, str]] = {
    "waitTimeMillsInSendQueue": "send_wait_ms",
    "waitTimeMillsInPullQueue": "pull_wait_ms",
    "waitTimeMillsInAdminBrokerQueue": "other_wait_ms",
}
"""Settings of a server, by RocketMQ's name: attributes of ``ServerLimits``."""
_FLUSH: Final = "flushDiskType"
_FLUSHES: Final = {"ASYNC_FLUSH": False, "SYNC_FLUSH": True}
_USUAL_FOLDERS: Final = {
    "storePathCommitLog": "commitlog",
    "storePathConsumeQueue": "consumequeue",
    "storePathIndex": "index",
}
"""Paths that are accepted if they name RocketMQ's default place below the store."""
_ONLY: Final[Mapping[str, tuple[str, str]]] = {
    "aclEnable": ("false", "there are no access rules, so each client may do all"),
    "authenticationEnabled": ("false", "no client is asked who it is"),
    "authorizationEnabled": ("false", "there are no access rules, so each client may do all"),
    "brokerId": ("0", "this broker is a master, and has no slaves"),
    "brokerRole": ("ASYNC_MASTER SYNC_MASTER", "this broker is a master, and has no slaves"),
    "enableControllerMode": ("false", "there is no controller"),
    "enableDLegerCommitLog": ("false", "a log of DLedger is one of another kind"),
    "storeType": ("default", "queues in RocksDB are a store of another kind"),
}
"""Settings with a few valid values, and the reason why others are refused."""
_MOST_PORT: Final = 65_535
_MOST_LOOKED_UP: Final = 20
"""Most unknown names whose nearest name is searched for, which takes some milliseconds each."""
_MOST_NAME: Final = 100
"""Longest such name in characters; RocketMQ's longest has some fifty."""
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
"""The byte order mark, which some editors write at the start of a file."""
_EXTRA: Final = frozenset((STORE_PATH, SEGMENT, QUEUE_FILE, _FLUSH, BROKER_IP, LISTEN_PORT, *WAITS, *_ONLY))


class Said(NamedTuple):
    """One setting as it was given.

    Attributes:
        name: RocketMQ's name.
        text: Its value.
        where: Its source, such as ``broker.conf line 3``.
    """

    name: str
    text: str
    where: str


@dataclass(slots=True)
class Startup:
    """All settings together.

    Attributes:
        settings: Values by attribute of :class:`BrokerConfig`.
        store: The store directory.
        is_sync: Whether sends wait for the disk.
        ip: The address in routes, without the port.
        ip_said: Its source.
        port: The broker's port.
        lengths: Lengths of a new store's files in bytes, by RocketMQ's names.
        lengths_said: Their sources, by the same names.
        waits: Times in milliseconds, by attribute of ``ServerLimits``.
        log: The folders of the log, if it is in several.
        unused: Names of RocketMQ's settings without effect here.
        unknown: Unknown names, each with its source and the nearest known name.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    store: str | None = None
    is_sync: bool | None = None
    ip: str | None = None
    ip_said: str = ""
    port: int | None = None
    lengths: dict[str, int] = field(default_factory=dict)
    lengths_said: dict[str, str] = field(default_factory=dict)
    waits: dict[str, int] = field(default_factory=dict)
    log: LogPaths | None = None
    unused: list[str] = field(default_factory=list)
    unknown: list[tuple[Said, str | None]] = field(default_factory=list)


def said_in(data: bytes, name: str) -> list[Said]:
    """Returns the settings of a configuration file.

    Args:
        data: Its bytes.
        name: Its name.

    Raises:
        InvalidArgumentError: It is not text.
    """
    try:
        entries = numbered_java_properties(data.removeprefix(_BYTE_ORDER_MARK))
    except CorruptError as error:
        raise InvalidArgumentError(
            f"{name}: {error}", help="give the broker's configuration file, such as conf/broker.conf"
        ) from error
    return [Said(one, text, f"{name} line {line}") for one, text, line in entries]


def read_startup(said: Iterable[Said], also: Mapping[str, Callable[[str], object]]) -> Startup:
    """Returns all settings together; if one was given several times, the last counts.

    Args:
        said: The settings, in their order.
        also: Functions by the name of a further setting; each takes its text, and raises
            InvalidArgumentError.

    Raises:
        InvalidArgumentError: A value is not valid, or the setting cannot be chosen here; the message has its
            name and source.
    """
    last = {one.name: one for one in said}
    root = last[STORE_PATH].text.strip() if STORE_PATH in last else None
    if root == "" or (root and "\0" in root):
        raise InvalidArgumentError(
            f"{last[STORE_PATH].where}: {STORE_PATH}={root!r} is no folder", help="name the store's directory"
        )
    found = Startup(store=root)
    stated = stated_log_paths({name: one.text for name, one in last.items()}, _where_of_log(last))
    if stated is not None and len(stated.paths) > 1:
        found.log = stated
        last = {name: one for name, one in last.items() if name not in (LOG_PATHS, READ_ONLY_PATHS)}
    for one in last.values():
        try:
            _take(found, one, root)
            also.get(one.name, str)(one.text.strip())
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{one.where}: {error}", help=error.help) from error
    return found


def _where_of_log(said: Mapping[str, Said]) -> str:
    return said[LOG_PATHS].where if LOG_PATHS in said else ""


def _take(found: Startup, one: Said, root: str | None) -> None:
    name, text = one.name, one.text.strip()
    key = OPENED_WITH.get(name) or CHANGEABLE.get(name)
    if key is not None:
        value = {key.attribute: read_value(name, key.read, text)}
        try:
            BrokerConfig(**value)  # checked one by one, so that an error can name the source
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{name}: {error}", help=f"give {name} such a value") from error
        found.settings |= value
    elif name in WAITS:
        found.waits[WAITS[name]] = read_value(name, read_count, text)
    elif name in (SEGMENT, QUEUE_FILE):
        found.lengths[name] = read_value(name, _LENGTHS[name], text)
        found.lengths_said[name] = one.where
    elif name == LISTEN_PORT:
        found.port = read_value(name, _read_port, text)
    elif name == BROKER_IP:
        found.ip, found.ip_said = text, one.where
    elif name == _FLUSH:
        if text not in _FLUSHES:
            raise refusal(name, text, " or ".join(_FLUSHES))
        found.is_sync = _FLUSHES[text]
    elif name in _ONLY:
        expected, why = _ONLY[name]
        if text not in expected.split():
            raise refusal(name, text, " or ".join(expected.split()), why)
    elif name != STORE_PATH:
        _take_other(found, one, root)


def _take_other(found: Startup, one: Said, root: str | None) -> None:
    """Takes a setting without effect here.

    Raises:
        InvalidArgumentError: It is a path, which would choose where files are.
    """
    folder = _USUAL_FOLDERS.get(one.name)
    if folder is not None and root is not None:
        if PurePosixPath(one.text.strip()) == PurePosixPath(root, folder):
            return
        raise InvalidArgumentError(
            f"{one.name}={one.text.strip()[:200]}: expected {PurePosixPath(root, folder)}",
            help=f"make {folder} in the store a link to the folder, and give --follow {folder}",
        )
    if is_refused(one.name, REFUSED):
        raise InvalidArgumentError(
            f"{one.name} cannot be chosen: all files of a broker are in its store directory",
            help=f"remove it; {STORE_PATH}, or the argument STORE, names the store",
        )
    if one.name in ROCKETMQ_KEYS:
        found.unused.append(one.name)
    else:
        known = ROCKETMQ_KEYS | _EXTRA | OPENED_WITH.keys() | CHANGEABLE.keys()
        is_looked_up = len(found.unknown) < _MOST_LOOKED_UP and len(one.name) <= _MOST_NAME
        near = difflib.get_close_matches(one.name, sorted(known), 1) if is_looked_up else []
        found.unknown.append((one, near[0] if near else None))


def _read_segment_length(text: str) -> int:
    return check_geometry(StoreGeometry(segment_size_bytes=read_count(text))).segment_size_bytes


def _read_queue_length(text: str) -> int:
    return check_geometry(StoreGeometry(queue_file_size_bytes=read_count(text))).queue_file_size_bytes


_LENGTHS: Final[Mapping[str, Callable[[str], int]]] = {
    SEGMENT: _read_segment_length,
    QUEUE_FILE: _read_queue_length,
}


def _read_port(text: str) -> int:
    number = read_count(text)
    if number > _MOST_PORT:
        raise ValueError(f"a port of 1..{_MOST_PORT}")
    return number
