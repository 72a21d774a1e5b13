"""One file under ``config/``: at every moment it or its ``.bak`` is whole.

A save writes ``X.tmp`` and syncs it, renames ``X`` to ``X.bak`` and ``X.tmp`` to ``X``, and syncs the folder.
Between the renames only the backup exists, which RocketMQ reads as well. Whichever of the renames reach the
disk, the file that is found is whole. A damaged ``X`` never becomes the backup.

A load reads ``X``, or else ``X.bak``. RocketMQ deletes a file that it cannot parse; here the damaged file is
moved to the evidence folder. If neither can be read, that is an error and not an empty table: starting with
an empty table would deliver all messages again. A caller that can do without a part of the file may load the
rest.

Source: ``ConfigManager.java load/persist``, ``MixAll.java string2File``.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from seglog.errors import ConfigError, CorruptError, FullError
from seglog.storage.files.files import MAX_WHOLE_BYTES, Files
from seglog.storage.format.config import ConfigValue, decode_config, encode_config
from seglog.storage.format.config.config_json import decode_loosely
from seglog.storage.format.ours.offset_history import file_print
from seglog.storage.threads.waiting import check_may_wait

T = TypeVar("T")

_TABLE: Final = re.compile(r"(.+\.json|timermetrics|transactionMetrics)(\.bak)?")
"""Names of files under ``config/`` that hold JSON."""


def is_config_table(name: str) -> bool:
    """Returns whether a file under ``config/`` of that name holds JSON, a backup included."""
    return _TABLE.fullmatch(name) is not None


class ConfigFile:
    """A config file and its backup.

    Not safe for two threads at once; its owner holds a lock around :meth:`save`.

    Args:
        files: The file layer.
        path: The file itself, such as ``store/config/topics.json``.
        evidence: Folder that damaged files are moved to; None leaves them in their place, for readers
            that must not change a byte.
        most_bytes: The longest file to write; a longer one could not be read again.
    """

    def __init__(
        self, files: Files, path: Path, evidence: Path | None = None, most_bytes: int = MAX_WHOLE_BYTES
    ) -> None:
        self._files = files
        self.path = path
        self._backup = path.with_name(path.name + ".bak")
        self._evidence = evidence
        self._most_bytes = most_bytes
        self._known_bytes = 0
        self._whole: int | None = None  # the print of the bytes that were parsed or saved
        self._file_print: int | None = None
        self._is_partial = False  # whether a part of the file cannot be read

    @property
    def file_print(self) -> int | None:
        """The print of the bytes that were loaded; None if nothing whole was."""
        return self._file_print

    @property
    def known_bytes(self) -> int:
        """Length of the file when it was read or saved last; 0 before."""
        return self._known_bytes

    def check_length(self, size_bytes: int) -> None:
        """Does nothing for a length that the file may have.

        Raises:
            FullError: It would be longer.
        """
        if size_bytes > self._most_bytes:
            raise FullError(
                f"{self.path} would have {size_bytes} bytes, at most {self._most_bytes}",
                help="delete what is not used any more from this table",
            )

    def load(
        self, parse: Callable[[ConfigValue], T], parse_rest: Callable[[ConfigValue], T] | None = None
    ) -> T | None:
        """Returns the value of the file, None if neither it nor a backup exists.

        Args:
            parse: Converts the decoded JSON to the value, and raises CorruptError if its shape is wrong.
            parse_rest: Converts the readable parts of a file without a whole backup; None if that is not
                wanted. The file then stays in its place; the next save moves it aside.

        Raises:
            ConfigError: A file exists, but neither it nor the backup can be read.
        """
        main = b""
        damage: CorruptError | None = None
        try:
            main = self._read(self.path)
            if main.strip():
                value = parse(decode_config(main))
                self._whole = self._file_print = file_print(main)
                self._known_bytes = len(main)
                return value
        except CorruptError as error:
            damage = error
        backup = b""
        try:
            backup = self._read(self._backup)
            if not backup.strip():
                if damage is None and not backup:
                    return None
                rest = None if parse_rest is None else self._rest_of(parse_rest, main)
                if rest is not None:
                    return rest
                raise ConfigError(f"{self.path} is damaged and has no backup: {damage}") from damage
            value = parse(decode_config(backup))
            self._known_bytes, self._file_print = len(backup), file_print(backup)
        except CorruptError as error:
            rest = None if parse_rest is None else self._rest_of(parse_rest, main, backup)
            if rest is not None:
                return rest
            raise ConfigError(
                f"neither {self.path} nor its backup can be read: {damage or 'the file is gone'}; {error}"
            ) from error
        if damage is not None:
            self._put_aside(main)
        return value

    def save(self, value: ConfigValue) -> None:
        """Replaces the file, durably; the old file becomes the backup.

        Raises:
            FullError: There is no space, or the file would be too long to be read again; the file and its
                backup are unchanged.
            WouldWaitError: The calling thread may not wait for the disk.
        """
        check_may_wait()
        self.replace(encode_config(value).encode(), sync=True)

    def replace(self, data: bytes, *, sync: bool) -> None:
        """Replaces the file as :meth:`save` does, by bytes that are encoded already.

        Args:
            data: The whole file.
            sync: Whether to sync it. Without a sync a crash of the machine may leave the old file.

        Raises:
            FullError: As for :meth:`save`.
        """
        self.check_length(len(data))
        folder = self.path.parent
        self._files.make_dirs(folder, sync=sync)
        new = self.path.with_name(self.path.name + ".tmp")
        self._files.write_file(new, data, sync=sync)
        try:
            main = self._read(self.path)
        except CorruptError:  # too long
            self._put_aside(b"")
        else:
            if main and not self._is_partial and self._is_whole(main):
                self._files.rename(self.path, self._backup)
            elif main.strip():
                self._put_aside(main)
        self._files.rename(new, self.path)
        if sync:
            self._files.sync_dir(folder)
        self._whole, self._is_partial, self._known_bytes = file_print(data), False, len(data)

    def _rest_of(self, parse_rest: Callable[[ConfigValue], T], *texts: bytes) -> T | None:
        """Returns the readable parts of the first text that has any."""
        for text in texts:
            with suppress(CorruptError):
                rest = parse_rest(decode_loosely(text))
                self._is_partial, self._known_bytes = True, len(text)
                return rest
        return None

    def _read(self, path: Path) -> bytes:
        try:
            return self._files.read_file(path) if self._files.exists(path) else b""
        except IsADirectoryError as error:
            raise ConfigError(f"{path} is a folder, where a file should be") from error

    def _is_whole(self, main: bytes) -> bool:
        if file_print(main) == self._whole:
            return True
        try:
            decode_config(main)
        except CorruptError:
            return False
        return True

    def _put_aside(self, damaged: bytes) -> None:
        """Moves the damaged file aside under a name of its content, so that equal damage is kept once."""
        if self._evidence is None:
            return
        self._files.make_dirs(self._evidence)
        self._files.rename(self.path, self._evidence / f"{self.path.name}.{zlib.crc32(damaged):08x}")
        self._files.sync_dir(self._evidence)
