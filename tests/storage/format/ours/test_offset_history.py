"""A file of offset history whose names are no text costs the changes that have them, and no more."""

from __future__ import annotations

import struct

import crc32c
import pytest

from seglog.storage.format.ours import (
    ChangeKind,
    OffsetChange,
    decode_changes,
    decode_offsets,
    encode_changes,
    offset_history,
)


def change(topic):
    return OffsetChange(ChangeKind.COMMIT, 1, "g", topic, 0, None, 5, "c", 1)


@pytest.mark.parametrize("decode", [decode_changes, decode_offsets])
def test_names_that_are_no_text_are_stepped_over(decode):
    damaged = bytearray(encode_changes([change("NAME")]))
    at = damaged.index(b"NAME")
    damaged[at : at + 4] = b"\xff\xfe\xff\xfe"
    checked_from = offset_history._CHECKED_FROM
    struct.pack_into(">I", damaged, checked_from - 4, crc32c.crc32c(bytes(damaged[checked_from:])))
    whole = encode_changes([change("T")])
    found = decode(bytes(damaged) + whole)
    assert found.end_bytes == len(damaged) + len(whole)
    kept = found.changes if decode is decode_changes else list(found.offsets)
    assert len(kept) == 1
