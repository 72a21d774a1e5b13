"""Records of a pull as they come over a connection.

Source: ``MessageDecoder.java decodesBatch``: records one after another, each with its size in front.
"""

from __future__ import annotations

from collections.abc import Sequence

from seglog.errors import ProtocolError
from seglog.remoting.bodies import RecordsBody
from seglog.storage.format.layout import I32


class WireRecords:
    """Records in one piece of bytes, which stay what they are: of their bodies nothing is checked.

    Raises:
        ProtocolError: Sizes that do not add up.
    """

    def __init__(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        self.records: Sequence[memoryview] = _cut(view)
        self.runs: Sequence[memoryview] = [view] if view else []

    def __len__(self) -> int:
        return len(self.records)


def decode_records(data: bytes | memoryview) -> RecordsBody:
    """Returns the records of a pull's answer; they are views of ``data``.

    Raises:
        ProtocolError: Sizes that do not add up.
    """
    return RecordsBody(WireRecords(data))


def _cut(view: memoryview) -> list[memoryview]:
    records: list[memoryview] = []
    at = 0
    while at < len(view):
        size_bytes = I32.unpack_from(view, at)[0] if len(view) - at >= I32.size else 0
        if not I32.size < size_bytes <= len(view) - at:
            raise ProtocolError(f"the record at byte {at} of {len(view)} says it has {size_bytes} bytes")
        records.append(view[at : at + size_bytes])
        at += size_bytes
    return records
