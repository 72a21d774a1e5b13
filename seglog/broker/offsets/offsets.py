"""The committed offset of each group in each queue, kept in ``config/consumerOffset.json``.

Truth: the table in memory; the file is written every few seconds and at close, as in RocketMQ. So a crash
loses the last commits, never messages: messages consumed since the last save are delivered again. What a
client waited for is in the history, and a broker that opens counts it.

Offsets are never below 0. At open, offsets beyond the end of their queue are set to that end: the store lost
the messages between in a crash, and a group that kept its offset would miss the messages that take their
places (apache/rocketmq#4215 went back to 0 instead and delivered everything again).

With a history, every change of the table is recorded there before the table is saved. A table that is gone is
restored from it: groups would begin at one end of their queues, and do all again or skip messages.

The offsets that groups have pulled are kept beside the committed ones, in memory only: messages between the
two are with clients. A reset counts at once, and blocks commits until the client was sent the new offset: a
commit before that is stale.

Source: ``ConsumerOffsetManager.java``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from seglog.broker.offsets.offset_history import OffsetHistory
from seglog.broker.offsets.offset_history_query import QueueKey
from seglog.broker.offsets.offset_table_file import (
    MAX_OFFSET,
    MIN_QUEUE_ID,
    SEPARATOR,
    parse_table,
    table_of,
    to_config,
)
from seglog.broker.offsets.queue_owners import QueueOwners
from seglog.broker.tables import DataVersion
from seglog.clock import Clock
from seglog.errors import InvalidArgumentError
from seglog.logs import logger
from seglog.storage.files import explained
from seglog.storage.format.config import ConfigValue, encode_config
from seglog.storage.format.names import MAX_QUEUE_ID, check_group
from seglog.storage.format.ours import ChangeKind, file_print
from seglog.storage.small_files import ConfigFile
from seglog.storage.threads import check_may_wait
from seglog.text import count_text

PORTION_OFFSETS: Final = 1_000
"""Offsets copied under the lock at a time; a key with more queues is copied whole."""
BROADCAST_SUFFIX: Final = "@broadcast"
"""Suffix of the name of a broadcasting group; its offset is the smallest of its clients."""

_log = logger(__name__)


@dataclass(frozen=True, slots=True)
class ClampedOffset:
    """An offset that was beyond the end of its queue at open."""

    topic: str
    group: str
    queue_id: int
    committed_offset: int
    max_offset: int


class ConsumerOffsets:
    """The offset table of a broker. Any thread may call it.

    Args:
        file: ``config/consumerOffset.json``.
        clock: Stamps the table's version.
        history: Records every change; None keeps no history.

    Attributes:
        is_new: Whether neither the file nor a history had an offset when it was opened.
    """

    def __init__(self, file: ConfigFile, clock: Clock, history: OffsetHistory | None = None) -> None:
        self._file = file
        self._clock = clock
        self._history = history
        self._lock = threading.Lock()
        self._saving = threading.Lock()
        self._is_dirty = False
        self._version = DataVersion()
        self._table: dict[str, dict[int, int]] = {}
        self._pulled: dict[str, dict[int, int]] = {}
        self._resets: dict[QueueKey, int] = {}
        self._owners = QueueOwners()
        self._unknown: Mapping[str | int, ConfigValue] = {}
        self.is_new = False
        stored = file.load(parse_table)
        self._has_file = stored is not None
        if stored is not None:
            self._version, self._table, self._unknown = stored
        elif history is not None and (past := history.newest()):
            self._table = table_of(past)
            self._is_dirty = True
            _log.warning(
                "%s is gone or empty, and so is its backup: %s of %s restored from the history of offsets",
                file.path,
                count_text(len(past), "offset"),
                count_text(len({group for group, _topic, _queue_id in past}), "group"),
            )
        else:
            self.is_new = True
        if history is not None:
            table = self.all()
            newest = history.begin(table, file.file_print)
            if newest != table:
                self._table = table_of(newest)
                self._is_dirty = True

    @override
    def __repr__(self) -> str:
        return f"<ConsumerOffsets of {len(self._table)} pairs of topic and group>"

    @property
    def is_dirty(self) -> bool:
        """Whether :meth:`persist` has something to save."""
        return self._is_dirty

    def take(self, group: str, topic: str, queue_id: int, owner: str) -> str | None:
        """Notes the member that begins in a queue; returns the one before, of which no commit follows."""
        with self._lock:
            return self._owners.take((group, topic, queue_id), owner)

    def commit(
        self,
        group: str,
        topic: str,
        queue_id: int,
        offset: int,
        client_id: str = "",
        owner: str | None = None,
    ) -> bool:
        """Stores the offset at which the group continues in a queue; it may be lower, as in RocketMQ.

        Until the group was sent a pending reset of the queue, its commits there are ignored.

        Args:
            group: The group.
            topic: The topic.
            queue_id: The queue.
            offset: The queue offset of the next message for the group.
            client_id: The client that commits, for the history.
            owner: The member that must have the queue; None for any.

        Returns:
            False if another member has begun in the queue since; then nothing is stored.

        Raises:
            InvalidArgumentError: The offset is negative, or a number is too large for the file.
            InvalidNameError: The group's name is not valid.
        """
        _check_offset(group, topic, queue_id, offset)
        with self._lock:
            if self._owners.has_other((group, topic, queue_id), owner):
                return False
            if not self._resets or (group, topic, queue_id) not in self._resets:
                self._set(ChangeKind.COMMIT, group, topic, queue_id, offset, client_id)
        return True

    def query(self, group: str, topic: str, queue_id: int) -> int | None:
        """Returns the committed offset, None if the group never committed one there.

        A reset that the group has not been sent yet takes precedence over an offset cloned since.
        """
        if self._resets and (offset := self._resets.get((group, topic, queue_id))) is not None:
            return offset
        queues = self._table.get(f"{topic}{SEPARATOR}{group}")
        return None if queues is None else queues.get(queue_id)

    def commit_broadcast(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Stores the offset that all clients of a broadcasting group have reached.

        Raises:
            InvalidNameError: The group's name is not valid.
        """
        check_group(group)
        with self._lock:
            owner = f"{group}{BROADCAST_SUFFIX}"
            self._set(ChangeKind.COMMIT, owner, topic, queue_id, offset, "BroadcastOffset")

    def query_broadcast(self, group: str, topic: str, queue_id: int) -> int | None:
        """Returns the offset that :meth:`commit_broadcast` stored, None if there is none."""
        return self.query(f"{group}{BROADCAST_SUFFIX}", topic, queue_id)

    def all(self) -> dict[QueueKey, int]:
        """Returns every offset by group, topic and queue."""
        return {
            (group, topic, queue_id): offset
            for key, queues in self._iter_copies()
            for topic, _, group in [key.partition(SEPARATOR)]
            for queue_id, offset in queues.items()
        }

    def of_group(self, group: str) -> dict[tuple[str, int], int]:
        """Returns all offsets of a group by topic and queue."""
        return {
            (topic, queue_id): offset
            for (owner, topic, queue_id), offset in self.all().items()
            if owner == group
        }

    def groups_of(self, topic: str) -> set[str]:
        """Returns the groups that have offsets in a topic, including broadcasting groups."""
        return {group.partition(SEPARATOR)[0] for group, name, _queue_id in self.all() if name == topic}

    def topics_of(self, group: str) -> set[str]:
        """Returns the topics that a group has offsets in."""
        return {topic for topic, _queue_id in self.of_group(group)}

    def note_pull(self, group: str, topic: str, queue_id: int, next_offset: int) -> None:
        """Notes the next offset that a group will pull from a queue; this is not a commit."""
        self._pulled.setdefault(f"{topic}{SEPARATOR}{group}", {})[queue_id] = next_offset

    def pulled(self, group: str, topic: str, queue_id: int) -> int | None:
        """Returns the next offset that the group pulls, None if it has not pulled since the broker opened."""
        return self._pulled.get(f"{topic}{SEPARATOR}{group}", {}).get(queue_id)

    def reset(
        self, group: str, topic: str, queue_id: int, offset: int, client_id: str = "", *, tell: bool = True
    ) -> None:
        """Moves a group in a queue, whether it has clients or not.

        Args:
            group: The group.
            topic: The topic.
            queue_id: The queue.
            offset: The new offset; the caller checks it against the queue.
            client_id: The client that resets it, for the history.
            tell: Whether the group's next pull there is answered with the new offset.

        Raises:
            InvalidArgumentError: The offset is negative, or a number is too large for the file.
            InvalidNameError: The group's name is not valid.
        """
        _check_offset(group, topic, queue_id, offset)
        with self._lock:
            self._set(ChangeKind.RESET, group, topic, queue_id, offset, client_id)
            if tell:
                self._resets[group, topic, queue_id] = offset

    def take_reset(self, group: str, topic: str, queue_id: int) -> int | None:
        """Returns the offset of a pending reset, once, to send it to a client; None if there is none."""
        return self._resets.pop((group, topic, queue_id), None) if self._resets else None

    def restore(
        self, wanted: Mapping[QueueKey, int], ends: Mapping[tuple[str, int], int], client_id: str = ""
    ) -> tuple[ClampedOffset, ...]:
        """Restores earlier offsets of groups; other queues are left unchanged.

        Args:
            wanted: The offsets, as returned by ``OffsetPast.at``.
            ends: Max offset by topic and queue; a larger one is set to it.
            client_id: The client that restores, for the history.

        Returns:
            The offsets that were beyond the end of their queue.
        """
        clamped: list[ClampedOffset] = []
        with self._lock:
            for (group, topic, queue_id), offset in sorted(wanted.items()):
                end = ends.get((topic, queue_id), offset)
                if offset > end:
                    clamped.append(ClampedOffset(topic, group, queue_id, offset, end))
                self._set(ChangeKind.RESTORE, group, topic, queue_id, min(offset, end), client_id)
        return tuple(clamped)

    def clone(self, source: str, target: str, topic: str | None = None, client_id: str = "") -> int:
        """Copies the offsets of one group to another; returns how many.

        Args:
            source: The group to copy from.
            target: The group to copy to; its offsets in other topics stay.
            topic: Only those of this topic.
            client_id: The client that clones, for the history.

        Raises:
            InvalidNameError: The target's name is not valid.
        """
        check_group(target)
        found = {key: offset for key, offset in self.of_group(source).items() if topic in (None, key[0])}
        with self._lock:
            for name in {name for name, _queue_id in found}:
                queues = self._table.get(f"{name}{SEPARATOR}{target}", {})
                for queue_id in [queue_id for queue_id in queues if (name, queue_id) not in found]:
                    before = queues.pop(queue_id)
                    self._is_dirty = True
                    self._note(ChangeKind.DELETE, target, name, queue_id, before, None, client_id)
            for (name, queue_id), offset in found.items():
                self._set(ChangeKind.CLONE, target, name, queue_id, offset, client_id)
        return len(found)

    def delete(self, group: str, topic: str | None = None, client_id: str = "") -> int:
        """Deletes the offsets of a group, including those of its broadcasting clients; returns how many.

        Args:
            group: The group.
            topic: Only those of this topic.
            client_id: Who deletes, for the history.
        """
        count = 0
        with self._lock:
            for key in list(self._table):
                name, _, owner = key.partition(SEPARATOR)
                if owner.partition(SEPARATOR)[0] != group or topic not in (None, name):
                    continue
                for queue_id, offset in self._table.pop(key).items():
                    self._note(ChangeKind.DELETE, owner, name, queue_id, offset, None, client_id)
                    count += 1
                self._pulled.pop(key, None)
                self._is_dirty = True
            self._owners.forget(group, topic)
            self._resets = {
                key: offset
                for key, offset in self._resets.items()
                if key[0] != group or topic not in (None, key[1])
            }
        return count

    def delete_topic(self, topic: str, client_id: str = "") -> int:
        """Deletes the committed and pulled offsets of all groups in a topic; returns how many.

        Args:
            topic: The topic.
            client_id: Who deletes, for the history.
        """
        count = sum(self.delete(group, topic, client_id) for group in self.groups_of(topic))
        with self._lock:
            for key in [key for key in self._pulled if key.partition(SEPARATOR)[0] == topic]:
                del self._pulled[key]
            self._owners.forget(None, topic)
            self._resets = {key: offset for key, offset in self._resets.items() if key[1] != topic}
        return count

    def clamp(self, ends: Iterable[tuple[str, int, int]]) -> tuple[ClampedOffset, ...]:
        """Sets offsets beyond the end of their queue to that end.

        Args:
            ends: Topic, queue and max offset of each queue of the store; offsets in other queues are left
                alone.

        Returns:
            The changed offsets, with their old values.
        """
        max_offsets = {(topic, queue_id): max_offset for topic, queue_id, max_offset in ends}
        clamped: list[ClampedOffset] = []
        for (group, topic, queue_id), offset in self.all().items():
            max_offset = max_offsets.get((topic, queue_id))
            if max_offset is not None and offset > max_offset:
                clamped.append(ClampedOffset(topic, group, queue_id, offset, max_offset))
        with self._lock:
            for one in clamped:
                self._set(ChangeKind.CLAMP, one.group, one.topic, one.queue_id, one.max_offset, "")
        return tuple(clamped)

    def _set(
        self, kind: ChangeKind, group: str, topic: str, queue_id: int, offset: int, client_id: str
    ) -> None:
        key = f"{topic}{SEPARATOR}{group}"
        queues = self._table.get(key)
        if queues is None:
            # Groups that were loaded from the file keep their names, even invalid ones.
            is_as_before = kind is ChangeKind.RESTORE
            check_group(
                group.partition(SEPARATOR)[0] if is_as_before else group.removesuffix(BROADCAST_SUFFIX)
            )
            queues = self._table[key] = {}
        before = queues.get(queue_id)
        if before != offset:
            queues[queue_id] = offset
            self._is_dirty = True
            self._note(kind, group, topic, queue_id, before, offset, client_id)

    def _note(
        self,
        kind: ChangeKind,
        group: str,
        topic: str,
        queue_id: int,
        before: int | None,
        after: int | None,
        client_id: str,
    ) -> None:
        if self._history is not None:
            self._history.note(kind, group, topic, queue_id, before, after, client_id)

    def persist(self) -> None:
        """Writes the history, and saves the table if it has changed.

        Raises:
            FullError: There is no space; the file is as it was and the next call tries again.
        """
        check_may_wait()
        with self._saving:
            with self._lock:  # cleared before the copy: a commit that the copy misses sets it again
                is_dirty, self._is_dirty = self._is_dirty, False
            is_saved = False
            try:
                table = dict(self._iter_copies()) if is_dirty else {}
                version = self._version.next(self._clock.now_ms())
                data = encode_config(to_config(table, version, self._unknown)).encode() if is_dirty else b""
                if self._history is not None:  # it then has every change that the copy has
                    self._history.flush(file_print(data) if is_dirty else None)
                if is_dirty:
                    with explained():
                        self._file.replace(data, sync=True)
                    self._version = version
                    self._has_file = True
                is_saved = True
            finally:
                if is_dirty and not is_saved:
                    self._is_dirty = True

    @property
    def has_unsynced(self) -> bool:
        """Whether :meth:`sync` has changes to write."""
        return self._is_dirty if self._history is None else self._history.synced < self._history.noted

    def sync(self) -> None:
        """Returns once all changes are on the disk, in the history; the table follows in time.

        One thread writes for all that wait for it.

        Raises:
            FullError: There is no space; nothing is lost, and the next call tries again.
        """
        if self._history is None or not self._has_file:
            self.persist()  # once: without the file a store looks as if it had lost it
            return
        check_may_wait()
        noted = self._history.noted
        with self._saving:
            if self._history.synced < noted:
                self._history.flush()

    @property
    def is_history_long(self) -> bool:
        """Whether :meth:`tidy` has work to do."""
        return self._history is not None and self._history.is_long

    def tidy(self) -> None:
        """Begins a new history file after a long one.

        Raises:
            FullError: There is no space; the history is as it was.
        """
        if self._history is not None:
            with self._saving:
                self._history.tidy()

    def close(self) -> None:
        """Closes the files; what was saved stays."""
        if self._history is not None:
            with self._saving, explained():
                self._history.close()

    def to_config(self) -> Mapping[str | int, ConfigValue]:
        """Returns the table as its file will have it."""
        return to_config(dict(self._iter_copies()), self._version, self._unknown)

    def _iter_copies(self) -> Iterator[tuple[str, dict[int, int]]]:
        """Yields the topics with their groups, each with a copy of its offsets.

        A commit waits for one portion at most, not for the whole table. So the offsets of one key are of one
        moment; a concurrent change of another key may be in the copy or not, and the next save has it.
        """
        keys = list(self._table)  # atomic in the interpreter, so it needs no lock
        at = 0
        while at < len(keys):
            portion: list[tuple[str, dict[int, int]]] = []
            count = 0
            with self._lock:
                while at < len(keys) and count < PORTION_OFFSETS:
                    queues = self._table.get(keys[at])
                    if queues is not None:  # its group was deleted since
                        portion.append((keys[at], queues.copy()))
                        count += max(1, len(queues))
                    at += 1
            yield from portion


def _check_offset(group: str, topic: str, queue_id: int, offset: int) -> None:
    """Refuses an offset that the file cannot hold: one such commit would keep all others from being saved."""
    if offset < 0:
        raise InvalidArgumentError(f"offset {offset} of group {group} in {topic}/{queue_id} is negative")
    if offset > MAX_OFFSET or not MIN_QUEUE_ID <= queue_id <= MAX_QUEUE_ID:
        raise InvalidArgumentError(f"offset {offset} of group {group} in {topic}/{queue_id} is out of range")
