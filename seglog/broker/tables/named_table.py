"""A table of named settings, kept in one file.

A change is saved before it is used: a value that was seen survives a crash and can be read again. Readers
never wait. A thread that may not wait for the disk only adds values that clients will send again if they are
lost.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar, Generic, TypeVar

from typing_extensions import override

from seglog.broker.tables.data_version import DataVersion
from seglog.broker.tables.entries import check_entry
from seglog.broker.tables.gathering import Gathering
from seglog.clock import Clock
from seglog.storage.files import explained
from seglog.storage.format.config import ConfigValue, encode_config
from seglog.storage.small_files import ConfigFile
from seglog.storage.threads import check_may_wait, may_wait

V = TypeVar("V")


class NamedTable(ABC, Generic[V]):
    """A table by name, kept in one file.

    Args:
        file: The file.
        clock: Stamps the table's version.
        values: The initial values, before the file is read.
    """

    most_entry_characters: ClassVar[int | None] = None
    """Longest text of one entry in the file; None for no limit."""

    def __init__(self, file: ConfigFile, clock: Clock, values: Mapping[str, V]) -> None:
        self._file = file
        self._clock = clock
        self._lock = threading.Lock()
        """Held by a thread that changes and saves the table, over its I/O."""
        self._quick = threading.Lock()
        """Guards the state in memory; never held during a wait for the disk."""
        self._version = DataVersion()
        self._unknown: Mapping[str | int, ConfigValue] = {}
        self._values: dict[str, V] = dict(values)
        self._is_dirty = False
        self._added_bytes = 0
        """Upper estimate of the growth of the file by the values to be saved later."""
        self._gathering: Gathering[V] = Gathering()

    @override
    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self._values)}>"

    @property
    def is_dirty(self) -> bool:
        """Whether :meth:`persist` has changes to save."""
        return self._is_dirty

    def persist(self) -> None:
        """Saves the changes that were not saved at once, if any.

        Raises:
            FullError: There is no space; what was saved before is unchanged.
        """
        with self._lock:
            if self._is_dirty:
                self._save(self._values)

    @property
    def gathered_count(self) -> int:
        """How many changes were ever saved together with others."""
        return self._gathering.count

    @contextmanager
    def one_save(self) -> Iterator[None]:
        """Collects the changes of the calling thread, and saves them together at its end.

        Raises:
            FullError: There is no space; none of them is made.
        """
        with self._lock:
            self._gathering.begin()
        try:
            yield
        finally:
            with self._lock:
                if self._gathering.end():
                    self._save_gathered()

    def to_config(self) -> Mapping[str | int, ConfigValue]:
        """Returns the present content of its file, or the content of the next save."""
        with self._quick:
            version, values = self._version, self._values
        return self._as_config(version, values)

    def _changing(self) -> threading.Lock:
        """Returns the lock for changes of the table.

        Raises:
            WouldWaitError: The calling thread may not wait for the disk.
        """
        check_may_wait()
        return self._lock

    def _ensure_later(self, wanted: Mapping[str, V]) -> None:
        """Adds values for names that have none; they are saved soon.

        For threads that may not wait, and values that clients send again if they are lost.

        Raises:
            FullError: The file would be too long to be read again; nothing has changed.
        """
        with self._quick:
            new = {name: value for name, value in wanted.items() if name not in self._values}
            if new:
                added_bytes = self._added_bytes + len(encode_config(self._as_entries(new)).encode())
                self._file.check_length(self._file.known_bytes + added_bytes)
                self._added_bytes = added_bytes
                self._values = {**self._values, **new}
                self._is_dirty = True

    def _ensure_all(self, wanted: Mapping[str, V], *, lazily: bool) -> None:
        """Adds values for names that have none, all with one save.

        Args:
            wanted: Values by name.
            lazily: Whether they may be saved later if the calling thread may not wait.

        Raises:
            FullError: There is no space; nothing has changed.
        """
        if all(name in self._values for name in wanted):
            return
        if lazily and not may_wait():
            self._ensure_later(wanted)
            return
        with self._changing():
            new = {name: value for name, value in wanted.items() if name not in self._values}
            if new:
                self._save({**self._values, **new}, is_ours=True)

    @abstractmethod
    def _as_config(self, version: DataVersion, values: Mapping[str, V]) -> Mapping[str | int, ConfigValue]:
        """Returns the content of the file."""

    @abstractmethod
    def _entries_of(self, value: ConfigValue) -> Mapping[str, V]:
        """Returns the values of a file.

        Raises:
            CorruptError: They cannot be read.
        """

    @abstractmethod
    def _as_entries(self, values: Mapping[str, V]) -> Mapping[str | int, ConfigValue]:
        """Returns only the part of the file that holds values."""

    def _save(self, values: dict[str, V], *, together: bool = True, is_ours: bool = False) -> None:
        """Saves values, and then uses them, under the lock.

        Args:
            values: All values of the table.
            together: Whether they may be saved with others if the calling thread gathers.
            is_ours: Whether the broker made the changed values, which can always be read again.

        Raises:
            InvalidArgumentError: A changed value could not be read again.
        """
        before = self._values
        if values is not before and not is_ours:
            for name, value in values.items():
                if before.get(name) is not value:
                    config = self._as_entries({name: value})
                    check_entry(name, value, config, self._entries_of, self.most_entry_characters)
        version = self._version.next(self._clock.now_ms())
        is_later = together and self._gathering.takes(before, values)
        if not is_later:
            with explained():
                self._file.save(self._as_config(version, values))
        with self._quick:
            since = {} if self._values is before else self._values
            added = {name: value for name, value in since.items() if name not in before}
            self._values = {**values, **added} if added else values
            self._version = version
            self._is_dirty = is_later or bool(added)
            if not self._is_dirty:
                self._added_bytes = 0

    def _save_gathered(self) -> None:
        is_saved = False
        try:
            self._save(self._values)
            is_saved = True
        finally:
            if not is_saved:
                with self._quick:
                    self._values = self._gathering.taken_back(self._values)
            self._gathering.forget()
