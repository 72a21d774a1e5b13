"""A table of named settings that is kept in one file.

A change is saved first and used then: what was seen exists after a crash. Readers wait for nothing, and a
thread that may not wait for the disk changes nothing but what comes again if it is lost.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Generic, TypeVar

from seglog.broker.tables.data_version import DataVersion
from seglog.broker.tables.gathering import Gathering
from seglog.clock import Clock
from seglog.storage.files import explained
from seglog.storage.format.config import ConfigValue
from seglog.storage.small_files import ConfigFile
from seglog.storage.threads import check_may_wait

V = TypeVar("V")


class NamedTable(ABC, Generic[V]):
    """A table by name that is kept in one file.

    Args:
        file: The file.
        clock: Stamps the table's version.
        values: What is there before the file was read.
    """

    def __init__(self, file: ConfigFile, clock: Clock, values: Mapping[str, V]) -> None:
        self._file = file
        self._clock = clock
        self._lock = threading.Lock()
        """Held by one that changes and saves the table, over its I/O."""
        self._quick = threading.Lock()
        """Guards what is in memory; nothing waits for the disk with it."""
        self._version = DataVersion()
        self._unknown: Mapping[str | int, ConfigValue] = {}
        self._values: dict[str, V] = dict(values)
        self._is_dirty = False
        self._gathering: Gathering[V] = Gathering()

    @property
    def is_dirty(self) -> bool:
        """Whether :meth:`persist` has something to save."""
        return self._is_dirty

    def persist(self) -> None:
        """Saves what has changed and was not saved at once, if anything.

        Raises:
            FullError: There is no space; what was saved before is still there.
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
        """Within it, the changes of the calling thread are not saved, but at its end, all at once.

        Raises:
            FullError: There is no space; nothing of them has changed.
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
        """Returns the table as its file has it, or will have it."""
        with self._quick:
            version, values = self._version, self._values
        return self._as_config(version, values)

    def _changing(self) -> threading.Lock:
        """Returns what is held to change the table.

        Raises:
            WouldWaitError: The calling thread may not wait for the disk.
        """
        check_may_wait()
        return self._lock

    def _ensure_later(self, name: str, value: V) -> V:
        """Returns the value of a name, this one if it had none: then it is saved soon.

        For threads that may not wait, and values that come again if they are lost.
        """
        with self._quick:
            known = self._values.get(name)
            if known is None:
                self._values = {**self._values, name: value}
                self._is_dirty = True
            return value if known is None else known

    @abstractmethod
    def _as_config(self, version: DataVersion, values: Mapping[str, V]) -> Mapping[str | int, ConfigValue]:
        """Returns what the file is to hold."""

    def _save(self, values: dict[str, V], *, together: bool = True) -> None:
        """Saves first and uses then, under the lock.

        Args:
            values: All of them, made of those of now.
            together: Whether they may be saved with others where the calling thread gathers.
        """
        before = self._values
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
