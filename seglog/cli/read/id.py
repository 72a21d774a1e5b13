"""``seglog id``: decodes message ids.

There are two kinds of the same length. An offsetMsgId holds the place of a record; a unique key (UNIQ_KEY)
holds its producer and its time in the month. An id does not show its kind, so both readings are tried and the
likelier one is marked.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import click

from seglog.cli.ui import options, render
from seglog.cli.ui.lazy_group import CommandGroup
from seglog.errors import InvalidArgumentError
from seglog.remoting.unique_id import UNIQUE_ID
from seglog.storage.format.record import IPV4_BYTES, IPV6_BYTES, decode_message_id

_MAX_PORT: Final = 65535
_MONTH_MS: Final = 31 * 86_400_000
_LOW_16: Final = 0xFFFF
_LOW_32: Final = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """The fields of a unique key; ``life`` and the fields after it are read as unsigned numbers."""

    address: str
    process_id: int
    life: int
    since_month_ms: int
    counter: int


@click.group(cls=CommandGroup)
def command() -> None:
    """Decode message ids."""


@command.command
@click.argument("message_id", metavar="ID")
@options.as_json
def decode(*, message_id: str, as_json: bool) -> None:
    """Show what a message id says: host and place of the record, or who made the id and when."""
    host, phy_offset = decode_message_id(message_id)
    key = decode_unique_key(message_id)
    may_be_place = 0 < host.port <= _MAX_PORT and phy_offset >= 0
    # The upper half of the port field is zero in an offsetMsgId; a unique key has its process id there.
    likely = "offsetMsgId" if may_be_place else "uniqKey"
    is_date = key.since_month_ms < _MONTH_MS
    if as_json:
        render.emit(
            {
                "kind": "id",
                "likely": likely,
                "offsetMsgId": {"storeHost": str(host), "commitLogOffset": phy_offset}
                if may_be_place
                else None,
                "uniqKey": {
                    "ip": key.address,
                    "pid": key.process_id,
                    "life": key.life,
                    "sinceMonthMs": key.since_month_ms,
                    "counter": key.counter,
                    "plausible": is_date,
                },
            }
        )
        return
    if may_be_place:
        render.facts(
            {"kind": "offsetMsgId: names a place", "store host": str(host), "record at": str(phy_offset)}
        )
        return
    render.facts(
        {
            "kind": "unique key (UNIQ_KEY): names who made it",
            "address": key.address,
            "process id": f"{key.process_id} (low 16 bits)",
            "life": f"{key.life:#010x} (distinguishes two lives of a process)",
            "made": _moment_text(key.since_month_ms)
            if is_date
            else f"{key.since_month_ms} ms: no time of a month",
            "counter": f"{key.counter} (low 16 bits)",
        }
    )


def decode_unique_key(text: str) -> UniqueKey:
    """Returns the fields of an id, read as a unique key.

    Raises:
        InvalidArgumentError: The text has not 32 or 56 hexadecimal digits.
    """
    try:
        raw = bytes.fromhex(text)
    except ValueError as error:
        raise InvalidArgumentError(f"{text!r} is no message id: {error}") from error
    size = len(raw) - UNIQUE_ID.size_bytes
    if size not in (IPV4_BYTES, IPV6_BYTES):
        raise InvalidArgumentError(f"{text!r} is no message id: 32 or 56 hexadecimal digits are")
    process_id, life, since_ms, counter = UNIQUE_ID.struct.unpack_from(raw, size)
    return UniqueKey(
        str(ipaddress.ip_address(raw[:size])),
        process_id & _LOW_16,
        life & _LOW_32,
        since_ms & _LOW_32,
        counter & _LOW_16,
    )


def _moment_text(since_month_ms: int) -> str:
    since = timedelta(milliseconds=since_month_ms)
    hours, rest = divmod(since.seconds, 3600)
    clock = f"{hours:02d}:{rest // 60:02d}:{rest % 60:02d}.{since.microseconds // 1000:03d}"
    return f"day {since.days + 1} of its month, {clock} (the month is not told; the producer's time zone)"
