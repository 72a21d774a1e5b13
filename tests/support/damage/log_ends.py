"""Logs whose end RocketMQ sees elsewhere than a check: what is done to a store, and where RocketMQ ends it.

The real store judges the table in ``tests/interop/repaired/test_triage.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from seglog.storage.format.layout import I32
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.format.record import MAGIC_BLANK, MAGIC_V1, PHY_OFFSET_AT

_SEGMENT: Final = 64 << 10
_SPARE: Final = 5
"""Number of the file behind the last with records: RocketMQ prepares it, and a clean stop removes it."""


class LogEnd(NamedTuple):
    """One damage of the golden stores ``roll`` and ``roll-halt``.

    Attributes:
        damage: Makes it.
        closed: Physical offset at which RocketMQ then ends the log of ``roll``, which was closed.
        halted: The same of ``roll-halt``, which was not: RocketMQ walks all of its log.
    """

    damage: Callable[[Path], None]
    closed: int
    halted: int


def _file(root: Path, number: int) -> Path:
    return root / COMMIT_LOG / segment_file_name(number * _SEGMENT)


def _gone(*numbers: int, spare: bool) -> Callable[[Path], None]:
    """Removes log files; the prepared one is there, or is not."""

    def act(root: Path) -> None:
        for number in numbers:
            _file(root, number).unlink()
        _file(root, _SPARE).unlink(missing_ok=True)
        if spare:
            _file(root, _SPARE).write_bytes(bytes(_SEGMENT))

    return act


def _filler_says(number: int, size_bytes: int) -> Callable[[Path], None]:
    """Gives the filler of a log file another length."""

    def act(root: Path) -> None:
        data = bytearray(_file(root, number).read_bytes())
        I32.pack_into(data, data.rindex(MAGIC_BLANK.to_bytes(4, "big")) - I32.size, size_bytes)
        _file(root, number).write_bytes(data)

    return act


def _noise_at_start(number: int) -> Callable[[Path], None]:
    def act(root: Path) -> None:
        data = bytearray(_file(root, number).read_bytes())
        data[:600] = b"U" * 600
        _file(root, number).write_bytes(data)

    return act


def _last_record_says(at: int, value: bytes) -> Callable[[Path], None]:
    """Writes over a field of the last record."""

    def act(root: Path) -> None:
        data = bytearray(_file(root, _SPARE - 1).read_bytes())
        start = data.rindex(MAGIC_V1.to_bytes(4, "big")) - I32.size + at
        data[start : start + len(value)] = value
        _file(root, _SPARE - 1).write_bytes(data)

    return act


def _each(*acts: Callable[[Path], None]) -> Callable[[Path], None]:
    def act(root: Path) -> None:
        for one in acts:
            one(root)

    return act


LOG_ENDS: Final[dict[str, LogEnd]] = {
    "the last file is gone, the prepared one is not": LogEnd(_gone(4, spare=True), 327680, 327680),
    "the last two files are gone, the prepared one is not": LogEnd(_gone(3, 4, spare=True), 327680, 327680),
    "the last file and the prepared one are gone": LogEnd(_gone(4, spare=False), 262067, 262067),
    "the last file is gone, and the filler before it says a negative length": LogEnd(
        _each(_gone(4, spare=True), _filler_says(3, -5)), 327680, 327680
    ),
    "the last file is gone, and the filler before it says more than its file": LogEnd(
        _each(_gone(4, spare=True), _filler_says(3, 70_000)), 262067, 262067
    ),
    "a filler says more than its file": LogEnd(_filler_says(2, 60_000), 320471, 193715),
    "a filler says less, and noise is at the start of the next file": LogEnd(
        _each(_filler_says(3, 7), _noise_at_start(4)), 262144, 262144
    ),
    "the last record says another place": LogEnd(_last_record_says(PHY_OFFSET_AT, bytes(8)), 320471, 320471),
    "the last record says a negative queue": LogEnd(_last_record_says(12, b"\x80\0\0\1"), 320471, 320471),
    "the last record says another body": LogEnd(_last_record_says(8, b"abcd"), 320307, 320307),
}
