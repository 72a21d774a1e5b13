"""What a broker is started with: RocketMQ's own configuration file, and single settings that win over it.

A name that RocketMQ does not know is told with the one that is nearest; a name that it knows and that changes
nothing here is told too. A path is refused, as requests for it are: all files are in the store directory.

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
from seglog.storage.directory import QUEUE_FILE, SEGMENT, StoreGeometry, check_geometry
from seglog.storage.format.config import numbered_java_properties

STORE_PATH: Final = "storePathRootDir"
WAITS: Final[Mapping[str, str]] = {
    "waitTimeMillsInSendQueue": "send_wait_ms",
    "waitTimeMillsInPullQueue": "pull_wait_ms",
    "waitTimeMillsInAdminBrokerQueue": "other_wait_ms",
}
"""What a server is started with, by RocketMQ's name: attributes of ``ServerLimits``."""
_FLUSH: Final = "flushDiskType"
_FLUSHES: Final = {"ASYNC_FLUSH": False, "SYNC_FLUSH": True}
_USUAL_FOLDERS: Final = {
    "storePathCommitLog": "commitlog",
    "storePathConsumeQueue": "consumequeue",
    "storePathIndex": "index",
}
"""Paths that say what is so anyway where they are below the store."""
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
"""Settings with few values that can be, and why another one cannot."""
_MOST_PORT: Final = 65_535
_MOST_LOOKED_UP: Final = 20
"""Names that are not known for which the nearest one is looked up, which takes some milliseconds each."""
_MOST_NAME: Final = 100
"""Characters of such a name; the longest of RocketMQ's has some fifty."""
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
"""Some editors write it at the begin of a file."""
_EXTRA: Final = frozenset((STORE_PATH, SEGMENT, QUEUE_FILE, _FLUSH, BROKER_IP, LISTEN_PORT, *WAITS, *_ONLY))


class Said(NamedTuple):
    """One setting as it was said.

    Attributes:
        name: RocketMQ's name.
        text: Its value.
        where: Who said it, such as ``broker.conf line 3``.
    """

    name: str
    text: str
    where: str


@dataclass(slots=True)
class Startup:
    """What was said in all.

    Attributes:
        settings: By attribute of :class:`BrokerConfig`.
        store: The store directory.
        is_sync: Whether sends wait for the disk.
        ip: What routes name, without the port.
        ip_said: Who said it.
        port: The broker's port.
        lengths: Of the files of a new store, by RocketMQ's names, in bytes.
        lengths_said: Who said them, by the same names.
        waits: By attribute of ``ServerLimits``, in milliseconds.
        unused: Names that RocketMQ knows, and that change nothing here.
        unknown: Names that RocketMQ does not know, each with who said it and the nearest that it does.
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
    unused: list[str] = field(default_factory=list)
    unknown: list[tuple[Said, str | None]] = field(default_factory=list)


def said_in(data: bytes, name: str) -> list[Said]:
    """Returns what a configuration file says.

    Args:
        data: Its bytes.
        name: What it is called.

    Raises:
        InvalidArgumentError: It is no text.
    """
    try:
        entries = numbered_java_properties(data.removeprefix(_BYTE_ORDER_MARK))
    except CorruptError as error:
        raise InvalidArgumentError(
            f"{name}: {error}", help="give the broker's configuration file, such as conf/broker.conf"
        ) from error
    return [Said(one, text, f"{name} line {line}") for one, text, line in entries]


def read_startup(said: Iterable[Said], also: Mapping[str, Callable[[str], object]]) -> Startup:
    """Returns what settings amount to; of one that was said several times the last counts.

    Args:
        said: The settings, in their order.
        also: Called with the texts of settings by these names; raises InvalidArgumentError for wrong ones.

    Raises:
        InvalidArgumentError: A value is none of its setting, or a setting is none that can be chosen; it is
            named with who said it.
    """
    last = {one.name: one for one in said}
    root = last[STORE_PATH].text.strip() if STORE_PATH in last else None
    if root == "" or (root and "\0" in root):
        raise InvalidArgumentError(
            f"{last[STORE_PATH].where}: {STORE_PATH}={root!r} is no folder", help="name the store's directory"
        )
    found = Startup(store=root)
    for one in last.values():
        try:
            _take(found, one, root)
            also.get(one.name, str)(one.text.strip())
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{one.where}: {error}", help=error.help) from error
    return found


def _take(found: Startup, one: Said, root: str | None) -> None:
    name, text = one.name, one.text.strip()
    key = OPENED_WITH.get(name) or CHANGEABLE.get(name)
    if key is not None:
        value = {key.attribute: read_value(name, key.read, text)}
        try:
            BrokerConfig(**value)  # its own checks, while it is known who said it
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
    """Takes a setting that changes nothing here.

    Raises:
        InvalidArgumentError: It would choose where files are.
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
