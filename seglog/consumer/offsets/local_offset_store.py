"""Offsets of a broadcasting client, which keeps its own offset of each queue in a file on its machine.

The file is ``<folder>/<client id>/<group>/offsets.json``, which Java's clients read and write too; beside it
is its previous version, ``offsets.json.bak``. It is written when the consumer commits, and not synced: as in
Java, after a power failure the last messages are delivered again. As in Java it is read when the consumer
starts: offsets that another process writes later stay in the file, but are not used.

Truth: never against the log. A broker moves the client if it does not have its offset.

Source: ``LocalFileOffsetStore.java``.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

from seglog.arguments import refusal
from seglog.clock import Clock
from seglog.consumer.offsets.begin import Begin
from seglog.consumer.offsets.first_offsets import FirstOffsets
from seglog.consumer.offsets.local_offsets_json import decode_local_offsets, encode_local_offsets
from seglog.errors import ConfigError, SeglogError
from seglog.remoting.later import Deferred
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.files import Files, explained
from seglog.storage.small_files import ConfigFile

_HELP: Final = "restore the file or its .bak from a backup, or move both away to start with an empty table"
MOST_BYTES: Final = 16 << 20
"""Longest file, that of 100,000 queues: the thread that all clients of a process share reads it."""


def local_offsets_path(folder: Path, client_id: str, group: str) -> Path:
    """Returns the file of a group's offsets in one client.

    Args:
        folder: The folder of all clients on the machine.
        client_id: The id of this client.
        group: The consumer group.

    Raises:
        InvalidArgumentError: The id cannot be the name of a folder.
    """
    if "/" in client_id or "\0" in client_id or client_id in {".", ".."}:
        raise refusal(
            "client_id", client_id, "a name for a folder, as a client that broadcasts has its offsets there"
        )
    return folder / client_id / group / "offsets.json"


class LocalOffsetStore:
    """The offsets of one group in one client. Its flows run on the client's home.

    Args:
        files: The file system of the file; it must refuse files longer than :data:`MOST_BYTES`.
        path: The path of the file.
        first: Finds the offset at which to begin in a queue without an offset.
        clock: Notes when a topic was first seen.

    Attributes:
        path: Of the file.
        owner: None: each member has the queues for itself.
    """

    owner: str | None = None

    def __init__(self, files: Files, path: Path, first: FirstOffsets, clock: Clock) -> None:
        self.path = path
        self._file = ConfigFile(files, path, most_bytes=MOST_BYTES)
        self._first = first
        self._clock = clock
        self._seen: dict[str, tuple[int, frozenset[MessageQueue]]] = {}
        self._found: dict[MessageQueue, int] | None = None
        self._mine: dict[MessageQueue, int] = {}
        self._is_new = False

    async def start_of(self, queue: MessageQueue) -> tuple[int, Begin]:
        """Returns the queue offset to continue at, and its origin.

        Raises:
            ConfigError: Neither the file nor the one before it can be read.
            SeglogError: The broker that is asked where to begin refuses, or does not answer.
        """
        kept = await self.kept(queue)
        if kept is not None:
            return kept, Begin.KEPT
        seen_ms, there = self._seen.get(queue.topic, (0, frozenset((queue,))))
        first = self._first.of(queue) if queue in there else self._first.of_new(queue, seen_ms)
        return await first, Begin.ANEW

    def saw(self, topic: str, queues: Collection[MessageQueue]) -> None:
        """Notes the first queues of a topic: queues added later are new.

        For other groups brokers report young queues themselves, but they know no offset of a broadcasting
        client.
        """
        self._seen.setdefault(topic, (self._clock.now_ms(), frozenset(queues)))

    def forget(self, queue: MessageQueue) -> None:
        """Drops the client's offset in a queue whose topic does not exist now."""
        self._seen[queue.topic] = self._clock.now_ms(), frozenset()
        self._mine.pop(queue, None)
        if self._found is not None:
            self._found.pop(queue, None)

    async def kept(self, queue: MessageQueue) -> int | None:
        """Returns the stored offset of the client; None if it has none.

        Raises:
            ConfigError: Neither the file nor the one before it can be read.
        """
        self.load()
        return self._mine.get(queue, (self._found or {}).get(queue))

    def load(self) -> None:
        """Reads the file, unless it was read already.

        Raises:
            ConfigError: Neither the file nor the one before it can be read.
            FileKindError: It is a pipe, a device or a socket.
        """
        if self._found is None:
            self._found = self._read()

    async def commit(self, queue: MessageQueue, queue_offset: int) -> None:
        """Notes the client's next offset in a queue."""
        self._is_new |= self._mine.get(queue) != queue_offset
        self._mine[queue] = queue_offset

    def persist(self) -> Deferred[None]:
        """Writes the committed offsets; other queues in the file stay unchanged.

        It fails with a ConfigError where neither the file nor the one before it can be read, and with a
        FullError where there is no space; the file stays as it was.
        """
        done: Deferred[None] = Deferred()
        try:
            self._write()
        except SeglogError as error:
            done.fail(error)
        else:
            done.resolve(None)
        return done

    def _write(self) -> None:
        if self._is_new:
            with explained():
                self._file.replace(encode_local_offsets({**self._read(), **self._mine}), sync=False)
            self._is_new = False

    def _read(self) -> dict[MessageQueue, int]:
        try:
            with explained():
                return self._file.load(decode_local_offsets) or {}
        except ConfigError as error:  # no store has it, so no command repairs it
            raise ConfigError(str(error), help=_HELP) from error
