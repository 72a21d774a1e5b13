"""Offsets of a client that broadcasts: it goes on in each queue by itself, by a file on its machine.

The file is ``<folder>/<client id>/<group>/offsets.json``, which clients in Java read and write too; beside it
is the one before, ``offsets.json.bak``. It is written when the consumer commits, and not synced: as in Java,
what is lost with a machine comes again. As in Java it is read when the consumer starts: what another process
writes meanwhile stays in the file, and is not taken.

Truth: none over the log. A broker moves the client where its offset is none that it has.

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
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.files import Files, explained
from seglog.storage.small_files import ConfigFile

MOST_BYTES: Final = 16 << 20
"""How long the file may be: that of 100,000 queues, which is read in the time of all clients of a process."""


def local_offsets_path(folder: Path, client_id: str, group: str) -> Path:
    """Returns the file of a group's offsets in one client.

    Args:
        folder: Of all clients on the machine.
        client_id: Of this one.
        group: Whose offsets.

    Raises:
        InvalidArgumentError: The id is none that a folder can have.
    """
    if "/" in client_id or "\0" in client_id or client_id in {".", ".."}:
        raise refusal(
            "client_id", client_id, "a name for a folder, as a client that broadcasts has its offsets there"
        )
    return folder / client_id / group / "offsets.json"


class LocalOffsetStore:
    """The offsets of one group in one client. Its flows run on the client's home.

    Args:
        files: Where the file is; they read none that is longer than :data:`MOST_BYTES`.
        path: Of the file.
        first: Says where to begin in a queue without an offset.
        clock: For when a topic was seen first.

    Attributes:
        path: Of the file.
    """

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
        """Returns the queue offset to go on from, and whether that is the one that is kept.

        Raises:
            ConfigError: Neither the file nor the one before it can be read.
            SeglogError: The broker that has to say where to begin refuses, or does not answer.
        """
        kept = await self.kept(queue)
        if kept is not None:
            return kept, Begin.KEPT
        seen_ms, there = self._seen.get(queue.topic, (0, frozenset((queue,))))
        first = self._first.of(queue) if queue in there else self._first.of_new(queue, seen_ms)
        return await first, Begin.ANEW

    def saw(self, topic: str, queues: Collection[MessageQueue]) -> None:
        """Takes note of the queues that a topic has at first: those that it gets later are new.

        Brokers say themselves that a queue is young, but of a client that broadcasts they know no offset.
        """
        self._seen.setdefault(topic, (self._clock.now_ms(), frozenset(queues)))

    async def kept(self, queue: MessageQueue) -> int | None:
        """Returns the offset that the client has; None where it has none.

        Raises:
            ConfigError: Neither the file nor the one before it can be read.
        """
        self.load()
        return self._mine.get(queue, (self._found or {}).get(queue))

    def load(self) -> None:
        """Reads the file, unless that was done.

        Raises:
            ConfigError: Neither the file nor the one before it can be read.
            FileKindError: It is a pipe, a device or a socket.
        """
        if self._found is None:
            self._found = self._read()

    async def commit(self, queue: MessageQueue, queue_offset: int) -> None:
        """Takes note of where the client goes on in a queue."""
        self._is_new |= self._mine.get(queue) != queue_offset
        self._mine[queue] = queue_offset

    async def persist(self) -> None:
        """Writes what was committed; other queues in the file stay as they are.

        Raises:
            ConfigError: Neither the file nor the one before it can be read.
            FullError: There is no space; the file stays as it was.
        """
        if self._is_new:
            with explained():
                self._file.replace(encode_local_offsets({**self._read(), **self._mine}), sync=False)
            self._is_new = False

    def _read(self) -> dict[MessageQueue, int]:
        with explained():
            return self._file.load(decode_local_offsets) or {}
