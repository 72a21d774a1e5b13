"""The epoch file of controller mode, ``epochFileCheckpoint``: which master's epoch the log is of, from where.

Text: the count of epochs; the CRC-32 of the lines that follow, without its highest bit (0: not checked); a
line ``epoch-startOffset`` for each, both rising. Before a new file takes its place the old one becomes
``.bak``.

Truth: none over the log. A slave finds by it where its log and that of its master part.

Source: ``common/.../CheckpointFile.java``, ``store/.../EpochFileCache.java``.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import Final

from seglog.errors import CorruptError

_LINE: Final = re.compile(r"([0-9]{1,10})-([0-9]{1,19})")
_HEAD_LINES: Final = 2
_CRC_MASK: Final = 0x7FFF_FFFF
_NOT_CHECKED: Final = 0


@dataclass(frozen=True, slots=True)
class Epoch:
    """The time of one master.

    Attributes:
        epoch: Its number, which rises.
        start_phy_offset: Where its part of the log begins.
    """

    epoch: int
    start_phy_offset: int


def decode_epochs(data: bytes) -> tuple[Epoch, ...]:
    """Returns the epochs, oldest first.

    Args:
        data: The whole file.

    Raises:
        CorruptError: RocketMQ could not read it, or its epochs do not rise.
    """
    lines = data.decode("ascii", "replace").splitlines()
    head = lines[:_HEAD_LINES]
    if len(head) < _HEAD_LINES or not all(line.isascii() and line.isdigit() for line in head):
        raise CorruptError("epochs", expected="a count and a checksum, each on a line", found=repr(data[:40]))
    count, crc = map(int, head)
    entries = lines[_HEAD_LINES:]
    if len(entries) != count:
        raise CorruptError("epochs", expected=f"{count} epochs", found=str(len(entries)))
    text = "".join(f"{line}\n" for line in entries)
    actual = zlib.crc32(text.encode()) & _CRC_MASK
    if crc not in {_NOT_CHECKED, actual}:
        raise CorruptError("epochs", expected=f"checksum {actual}", found=str(crc))
    epochs: list[Epoch] = []
    for line in entries:
        found = _LINE.fullmatch(line)
        if found is None:
            raise CorruptError("epochs", expected="a line epoch-startOffset", found=repr(line[:40]))
        epoch = Epoch(int(found[1]), int(found[2]))
        if epochs and (
            epoch.epoch <= epochs[-1].epoch or epoch.start_phy_offset <= epochs[-1].start_phy_offset
        ):
            raise CorruptError("epochs", expected="epochs that rise", found=repr(line))
        epochs.append(epoch)
    return tuple(epochs)
