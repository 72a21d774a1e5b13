"""Files of the controller mode: whose turn as master began where, and who this broker is.

``epochFileCheckpoint`` is text: the number of entries, a CRC-32 (without its top bit) of the entries' lines,
0 for "do not check", then one ``epoch-startOffset`` a line. ``brokerIdentity`` is one line,
``cluster#broker#id``; while a broker registers, a ``…-temp`` beside it has a check code as fourth part.

Source: ``common/.../CheckpointFile.java``, ``store/.../ha/autoswitch/EpochFileCache.java``,
``BrokerMetadata.java``, ``TempBrokerMetadata.java``.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from typing import Final, NamedTuple

from seglog.errors import CorruptError, InvalidArgumentError
from seglog.storage.format.record import CRC_MASK

EPOCH_FILE: Final = "epochFileCheckpoint"
BROKER_IDENTITY_FILE: Final = "brokerIdentity"

_NUMBER: Final = re.compile(r"[0-9]{1,10}")
_ENTRY: Final = re.compile(r"([0-9]{1,10})-([0-9]{1,19})")
_ID: Final = re.compile(r"-?[0-9]{1,19}")


class Epoch(NamedTuple):
    """A master's term, and the physical offset it began at."""

    epoch: int
    start_phy_offset: int


class BrokerIdentity(NamedTuple):
    """Who a broker is; ``check_code`` only while it registers."""

    cluster: str
    name: str
    broker_id: int
    check_code: str | None = None


def decode_epochs(data: bytes) -> list[Epoch]:
    """Returns the terms, oldest first.

    Raises:
        CorruptError: No such file, another number of entries, or a CRC that does not match.
    """
    lines = _text(data, EPOCH_FILE).splitlines()
    if len(lines) < 2 or not _NUMBER.fullmatch(lines[0]) or not _NUMBER.fullmatch(lines[1]):
        raise CorruptError("epoch-head", file=EPOCH_FILE, expected="two numbers", found=repr(lines[:2])[:80])
    epochs: list[Epoch] = []
    for line in lines[2:]:
        entry = _ENTRY.fullmatch(line)
        if entry is None:
            raise CorruptError("epoch-entry", file=EPOCH_FILE, expected="epoch-offset", found=repr(line)[:80])
        epochs.append(Epoch(int(entry[1]), int(entry[2])))
    if len(epochs) != int(lines[0]):
        raise CorruptError("epoch-count", file=EPOCH_FILE, expected=lines[0], found=len(epochs))
    crc = _crc(lines[2:])
    if int(lines[1]) not in (0, crc):
        raise CorruptError("epoch-crc", file=EPOCH_FILE, expected=lines[1], found=crc)
    return epochs


def encode_epochs(epochs: Sequence[Epoch]) -> bytes:
    """Returns the bytes of the file."""
    lines = [f"{epoch.epoch}-{epoch.start_phy_offset}" for epoch in epochs]
    return "".join(f"{line}\n" for line in (str(len(lines)), str(_crc(lines)), *lines)).encode()


def decode_broker_identity(data: bytes) -> BrokerIdentity:
    """Returns who the broker is.

    Raises:
        CorruptError: Not three or four parts, or an id that is no number.
    """
    parts = _text(data, BROKER_IDENTITY_FILE).rstrip("\n").split("#")
    if len(parts) not in (3, 4) or not _ID.fullmatch(parts[2]):
        raise CorruptError(
            "broker-identity",
            file=BROKER_IDENTITY_FILE,
            expected="cluster#broker#id",
            found=repr(parts)[:80],
        )
    return BrokerIdentity(parts[0], parts[1], int(parts[2]), *parts[3:])


def encode_broker_identity(identity: BrokerIdentity) -> bytes:
    """Returns the bytes of the file.

    Raises:
        InvalidArgumentError: A part that holds the separator or a line break.
    """
    parts = [str(part) for part in identity if part is not None]
    if any("#" in part or "\n" in part for part in parts):
        raise InvalidArgumentError(f"{identity} has a part with '#' or a line break")
    return "#".join(parts).encode()


def _crc(lines: Sequence[str]) -> int:
    return zlib.crc32("".join(f"{line}\n" for line in lines).encode()) & CRC_MASK


def _text(data: bytes, file: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise CorruptError(
            "text", file=file, position_bytes=error.start, expected="UTF-8", found=error.reason
        ) from error
