"""Reads the offset files of broadcasting clients on a machine; never writes them.

The folder has ``<client id>/<group>/offsets.json``, of Java's and of seglog's clients. If neither the file
nor its backup can be read, its client does not start: in Java with ``readLocalOffset Exception``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from seglog.consumer.offsets.local_offset_store import MOST_BYTES
from seglog.consumer.offsets.local_offsets_json import decode_local_offsets
from seglog.errors import SeglogError
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.files import Files, explained
from seglog.storage.small_files import ConfigFile

_NAMES: Final = ("offsets.json", "offsets.json.bak")


@dataclass(frozen=True, slots=True)
class ClientOffsets:
    """The offsets of one group in one client.

    Attributes:
        client_id: The id of the client.
        group: Of its consumer.
        path: The file.
        offsets: The next queue offset of each queue; empty if the file cannot be read.
        problem: Why it cannot be read; empty if it can.
    """

    client_id: str
    group: str
    path: Path
    offsets: Mapping[MessageQueue, int] = field(default_factory=dict)
    problem: str = ""


def read_local_offsets(files: Files, folder: Path) -> Iterator[ClientOffsets]:
    """Yields the offsets of all files below a folder, by client and group.

    Args:
        files: The file system of the folder.
        folder: The folder of all clients, such as ``~/.rocketmq_offsets``.

    Raises:
        OSError: The folder cannot be listed.
    """
    for client in _folders(files, folder):
        for group in _folders(files, folder / client):
            names = {entry.name for entry in files.list_dir(folder / client / group)}
            if names.isdisjoint(_NAMES):
                continue
            path = folder / client / group / _NAMES[0]
            try:
                with explained():
                    found = ConfigFile(files, path, most_bytes=MOST_BYTES).load(decode_local_offsets)
            except SeglogError as error:
                yield ClientOffsets(client, group, path, problem=str(error))
            else:
                yield ClientOffsets(client, group, path, found or {})


def _folders(files: Files, folder: Path) -> list[str]:
    return sorted(entry.name for entry in files.list_dir(folder) if files.is_dir(folder / entry.name))
