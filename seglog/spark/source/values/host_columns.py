"""Hosts and message ids as text, for many records at once."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seglog.spark.source.values.strings import fixed_width, merged
from seglog.storage.format.layout import I32_ITEMS, I64_ITEMS
from seglog.storage.format.record import (
    BORN_HOST_V6,
    HEADS,
    HOST_BITS,
    IPV4_BYTES,
    IPV6_BYTES,
    STORE_HOST_V6,
    Host,
)
from seglog.storage.kernels.gather import Bytes, Ints, overlapping

_OCTETS: Final = pa.array([str(number) for number in range(256)])
_DIGITS: Final = np.frombuffer(bytes(range(256)).hex().upper().encode(), "V2").view(np.uint16)
"""The two hexadecimal digits of each byte."""
_WIDE: Final = {"born": BORN_HOST_V6, "store": STORE_HOST_V6}
_PORT_BYTES: Final = 4
_MANY_HOSTS: Final = 4096


class HostColumns:
    """Hosts of the records of a window.

    Args:
        buffer: The window.
        positions: ``(n,)``, starts of the records in it.
        sys_flags: ``(n,)``, whose bits give the lengths of the addresses.
    """

    def __init__(self, buffer: Bytes, positions: Ints, sys_flags: Ints) -> None:
        self._buffer = buffer
        self._positions = positions
        self._bits = sys_flags & HOST_BITS

    def hosts(self, kind: str) -> pa.Array:
        """Returns address and port as text; ``kind`` is ``born`` or ``store``."""
        return merged([(rows, _texts(raw)) for rows, raw in self._raw(kind)])

    def message_ids(self, phy_offsets: Ints) -> pa.Array:
        """Returns the offsetMsgId of each record."""
        parts = []
        for rows, raw in self._raw("store"):
            places = phy_offsets[rows].astype(I64_ITEMS).view(np.uint8).reshape(-1, 8)
            digits = _DIGITS[np.concatenate([raw, places], axis=1)]
            parts.append((rows, fixed_width(digits.view(np.uint8))))
        return merged(parts)

    def _raw(self, kind: str) -> list[tuple[Ints, Bytes]]:
        """Returns rows and their address and port, ``(k, 8)`` or ``(k, 20) u8``."""
        found: list[tuple[Ints, Bytes]] = []
        for width, wide in ((IPV4_BYTES, 0), (IPV6_BYTES, _WIDE[kind])):
            rows = np.flatnonzero((self._bits & _WIDE[kind]) == wide)
            if len(rows) or (not wide and not len(self._bits)):
                starts = self._positions[rows] + _starts(kind)[self._bits[rows]]
                item = np.dtype(f"V{width + _PORT_BYTES}")
                raw = overlapping(self._buffer, item)[starts].view(np.uint8)
                found.append((rows, raw.reshape(-1, width + _PORT_BYTES)))
        return found


@lru_cache
def _starts(kind: str) -> Ints:
    """Returns the start of a host in a record, by the host bits of its flags."""
    found = np.zeros(HOST_BITS + 1, np.int64)
    for bits, layout in HEADS.items():
        found[bits] = layout.offsets[f"{kind}_address"]
    return found


def _texts(raw: Bytes) -> pa.Array:
    """Returns hosts as text; a few hosts write many messages, so each is formatted once."""
    if raw.shape[1] != IPV4_BYTES + _PORT_BYTES:
        return _spelled(raw)
    numbers = pa.array(np.ascontiguousarray(raw).view(np.int64).ravel()).dictionary_encode()
    distinct = numbers.dictionary.to_numpy(zero_copy_only=False).view(np.uint8)
    return _spelled(distinct.reshape(-1, raw.shape[1])).take(numbers.indices)


def _spelled(raw: Bytes) -> pa.Array:
    ports = pa.array(raw[:, -_PORT_BYTES:].copy().view(I32_ITEMS).ravel().astype(np.int32)).cast(pa.string())
    if raw.shape[1] == IPV4_BYTES + _PORT_BYTES:
        octets = [_OCTETS.take(pa.array(raw[:, place])) for place in range(IPV4_BYTES)]
        return pc.binary_join_element_wise(pc.binary_join_element_wise(*octets, "."), ports, ":")
    addresses = [_address(bytes(one)) for one in raw[:, :-_PORT_BYTES]]
    return pc.binary_join_element_wise(pa.array(addresses, pa.string()), ports, ":")


@lru_cache(maxsize=_MANY_HOSTS)
def _address(address: bytes) -> str:
    return str(Host(address, 0)).removesuffix(":0")
