"""Finds a message and all records made from it: half, delayed, retried, dead, parked and committed copies.

RocketMQ's copies keep the producer's UNIQ_KEY, and every UNIQ_KEY is in the key index; so the index finds
them in the part of the log that it covers. ORIGIN_MESSAGE_ID is in no index: copies that share nothing else
with their message, and records without keys, are found only by a scan.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from seglog.doctor.message import copy_names
from seglog.doctor.message.log_access import LogView, Scanned
from seglog.doctor.message.roles import Role, role_of
from seglog.errors import InvalidArgumentError, NotFoundError
from seglog.storage.format.index import record_keys
from seglog.storage.format.names import COMMIT_LOG, check_topic, segment_file_name
from seglog.storage.format.record import Message, decode_message_id
from seglog.storage.format.record import properties as props
from seglog.storage.walk import Progress

_OF_IDS: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
"""Usual bytes of ids and keys: if a text is next to one of these, it is part of a longer id."""


class Scan(enum.Enum):
    """How much of the log is scanned."""

    NEVER = "never"
    """Nothing: only records in the index are found."""
    WHERE_NEEDED = "where needed"
    """The part that the index does not cover; all of it for a message without UNIQ_KEY, or for a message of a
    transaction in its own topic (3.x, 4.x) without an outcome."""
    ALWAYS = "always"
    """All of it."""


@dataclass(slots=True)
class Search:
    """How the records were searched for.

    Attributes:
        by_index: Whether the index was used.
        scanned: The stretches of the log that were walked.
        mentions: Records that hold the key or an id somewhere, but are no copies: in a body, for instance.
            Records that hold it only as a part of a longer id are left out.
        not_looked: Sentences about parts that were not searched.
    """

    by_index: bool = False
    scanned: list[Scanned] = field(default_factory=list)
    mentions: list[Message] = field(default_factory=list)
    not_looked: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Families:
    """The messages that were found.

    Attributes:
        families: For each message, all records that belong to it, in log order.
        search: How they were searched for.
    """

    families: list[list[Message]]
    search: Search


def names_of(message: Message) -> set[str]:
    """Returns the ids of a record, and the ids by which it names its origin."""
    found = {message.message_id}
    for name in (props.UNIQ_KEY, copy_names.TIMER_DEL_UNIQKEY, *copy_names.ID_PROPERTIES):
        value = message.properties.get(name)
        if value:
            found.add(value)
    return found


def find_families(
    view: LogView,
    wanted: str,
    *,
    topic: str | None = None,
    scan: Scan = Scan.WHERE_NEEDED,
    limit: int | None = None,
    progress: Progress | None = None,
) -> Families:
    """Finds messages by id or key, and all copies of each.

    Args:
        view: The store.
        wanted: A message id, a unique key or a key.
        topic: Topic in which to search for a key; None for every topic.
        scan: How much of the log to walk.
        limit: Most messages, the newest ones; None for all.
        progress: Called during every walk.

    Raises:
        InvalidArgumentError: ``wanted`` is empty.
        NotFoundError: There is no such message in the searched parts.
    """
    if not wanted:
        raise InvalidArgumentError("an empty key names no message")
    if topic is not None:
        check_topic(topic)
    return _Finder(view, wanted, topic, scan, progress).run(limit)


class _Finder:
    """One search and its results so far."""

    def __init__(
        self, view: LogView, wanted: str, topic: str | None, scan: Scan, progress: Progress | None
    ) -> None:
        self._view = view
        self._wanted = wanted
        self._topic = topic
        self._scan = scan
        self._progress = progress
        self._search = Search()
        self._seen: dict[int, Message] = {}
        self._asked: set[str] = set()
        self._walked: set[bytes] = set()

    def run(self, limit: int | None) -> Families:
        found = self._by_message_id(self._wanted) or self._by_index(self._wanted, any_key=True)
        seeds = {message.phy_offset: message for message in found}
        if not seeds:
            seeds = self._found_by_walk()
        if not seeds and self._view.doubt_index():
            self._walked.clear()  # what damaged files answered for is read now
            seeds = self._found_by_walk()
        if not seeds:
            looked = "; ".join(self._search.not_looked)
            raise NotFoundError(
                f"no message has the id or key {self._wanted!r}"
                + (f" (not looked at: {looked})" if looked else ""),
                help="keys are compared as a whole; `seglog get STORE TOPIC` shows keys and ids of messages",
            )
        self._seen |= seeds
        self._close_by_index(seeds.values())
        self._close_by_scan(seeds.values())
        families = self._families(set(seeds))
        if limit is not None:
            families = families[-limit:]
        members = {message.phy_offset for family in families for message in family}
        self._search.mentions = [
            message
            for at, message in sorted(self._seen.items())
            if at not in members
            and not (names_of(message) & self._asked and at in seeds)
            and _mentions(message, self._walked)
        ]
        return Families(families, self._search)

    def _found_by_walk(self) -> dict[int, Message]:
        self._walk({self._wanted}, whole=not self._view.index or self._scan is Scan.ALWAYS)
        return {at: message for at, message in self._seen.items() if self._has_key(message)}

    def _by_message_id(self, message_id: str) -> list[Message]:
        """Returns the message of an id, if there is one."""
        try:
            host, phy_offset = decode_message_id(message_id)
        except InvalidArgumentError:
            return []
        message = self._view.message_at(phy_offset)
        return [message] if message is not None and message.store_host == host else []

    def _by_index(self, key: str, *, any_key: bool) -> Iterator[Message]:
        """Yields the messages that the index leads to: all with a key, or only those with that unique key."""
        self._search.by_index = self._search.by_index or bool(self._view.index)
        for topic in self._view.topics if self._topic is None or not any_key else [self._topic]:
            for _file, phy_offset in self._view.index_places(topic, key):
                message = self._seen.get(phy_offset) or self._view.message_at(phy_offset)
                if message is None or message.topic != topic:
                    continue
                if message.unique_key == key or (any_key and self._has_key(message)):
                    yield message

    def _has_key(self, message: Message) -> bool:
        if self._topic is not None and message.topic != self._topic:
            return False
        keys = record_keys(message.topic, message.properties_raw, 0, tags=False)
        return f"{message.topic}#{self._wanted}" in keys or message.message_id == self._wanted

    def _close_by_index(self, seeds: Iterable[Message]) -> None:
        """Adds records with the same unique keys, and the messages that copies name as their origin."""
        left = list(seeds)
        while left:
            for name in names_of(left.pop()) - self._asked:
                self._asked.add(name)
                for message in (*self._by_index(name, any_key=False), *self._by_message_id(name)):
                    if message.phy_offset not in self._seen:
                        self._seen[message.phy_offset] = message
                        left.append(message)

    def _close_by_scan(self, seeds: Iterable[Message]) -> None:
        has_unique = all(message.unique_key for message in seeds)
        whole = self._scan is Scan.ALWAYS or not has_unique or not self._view.index or self._is_open()
        before = set(self._seen)
        while True:
            known = len(self._seen)
            names = {self._wanted} if any(map(self._has_key, self._seen.values())) else set()
            for at, message in self._seen.items():
                if names_of(message) & self._asked:
                    # A record that a scan found has no other names: nothing names its own message id.
                    names |= _searched(message) if at in before else names_of(message) - {message.message_id}
            if not self._walk(names, whole=whole) or len(self._seen) == known:
                return
            self._close_by_index([m for m in self._seen.values() if names_of(m) & self._asked])

    def _is_open(self) -> bool:
        """Returns whether a transaction of 3.x or 4.x has no outcome yet: a ROLLBACK is in no index."""
        roles = Counter(map(role_of, self._seen.values()))
        ends = roles[Role.COMMITTED] + roles[Role.ROLLED_BACK]
        return roles[Role.PREPARED] > ends

    def _walk(self, names: set[str], *, whole: bool) -> bool:
        """Walks for names that no earlier walk searched for; returns whether there were any."""
        texts = {name.encode("utf-8", "surrogateescape") for name in names} - self._walked
        if not texts:
            return False
        self._walked |= texts
        view = self._view
        stretches = [(None, None)] if whole else view.not_indexed()
        if self._scan is Scan.NEVER:
            if self._is_open():
                self._search.not_looked.append(
                    "ROLLBACK records, which end a transaction of 3.x or 4.x and are in no index (--scan)"
                )
            self._search.not_looked += [f"the log {_stretch_text(*stretch)}" for stretch in stretches] + [
                "ORIGIN_MESSAGE_ID of records with another UNIQ_KEY"
            ]
            return False
        for stretch in stretches:
            scanned = view.scan(sorted(texts), *stretch, self._progress)
            self._search.scanned.append(scanned)
            segment = view.segment_size_bytes
            self._search.not_looked += [
                f"{hole.size_bytes} bytes that cannot be read in"
                f" {COMMIT_LOG}/{segment_file_name(hole.phy_offset - hole.phy_offset % segment)}"
                f" +{hole.phy_offset % segment}"
                for hole in scanned.holes
            ]
            for phy_offset in scanned.phy_offsets:
                message = self._seen.get(phy_offset) or view.message_at(phy_offset)
                if message is not None:
                    self._seen[phy_offset] = message
                else:
                    self._search.not_looked.append(
                        f"a damaged record at {phy_offset} that holds the key or an id"
                    )
        return True

    def _families(self, seeds: set[int]) -> list[list[Message]]:
        """Returns the records of each requested message; records that share a name belong to one message."""
        owner: dict[str, int] = {}
        families: dict[int, list[Message]] = {}
        for at, message in sorted(self._seen.items()):
            names = names_of(message)
            joined = sorted({owner[name] for name in names if name in owner})
            root = joined[0] if joined else at
            members = families.setdefault(root, [])
            members.append(message)
            for other in joined[1:]:
                members += families.pop(other)
            for member in members:
                owner |= dict.fromkeys(names_of(member), root)
        chosen = [
            family for family in families.values() if seeds & {message.phy_offset for message in family}
        ]
        for family in chosen:
            family.sort(key=lambda message: message.phy_offset)
        return sorted(chosen, key=lambda family: family[0].phy_offset)


def _mentions(message: Message, texts: set[bytes]) -> bool:
    """Returns whether a record holds one of some texts as a whole, not as a part of a longer id."""
    parts = (message.body, message.properties_raw, message.topic.encode("utf-8", "surrogateescape"))
    return any(_holds_whole(part, text) for text in texts for part in parts)


def _holds_whole(data: bytes, text: bytes) -> bool:
    at = data.find(text)
    while at >= 0:
        end = at + len(text)
        begins = at == 0 or data[at - 1] not in _OF_IDS
        ends = end == len(data) or data[end] not in _OF_IDS
        if begins and ends:
            return True
        at = data.find(text, at + 1)
    return False


def _searched(message: Message) -> set[str]:
    """Returns the names that further copies of a record may have: a copy names the original, never a copy."""
    names = names_of(message)
    has_origin = any(message.properties.get(name) for name in copy_names.ID_PROPERTIES)
    return names - {message.message_id} if has_origin else names


def _stretch_text(start: int | None, end: int | None) -> str:
    if start is None and end is None:
        return "itself, which the index does not cover"
    return f"from {start or 0} to {'its end' if end is None else end}, which the index does not cover"
