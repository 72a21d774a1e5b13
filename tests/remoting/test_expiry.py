"""A message ends its TTL after its birth; without one, or with one that is no number, it never does."""

from __future__ import annotations

import pytest

from seglog.remoting.expiry import expires_at_ms, is_expired
from seglog.storage.format.record.properties import encode_properties

BORN_MS = 1_000


@pytest.mark.parametrize(
    ("ttl", "end_ms"),
    [
        ("1", 1_001),
        ("60000", 61_000),
        ("0", None),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("9" * 19, None),
    ],
)
def test_s1_16_a_ttl_counts_from_the_birth_and_0_never_ends(ttl, end_ms):
    assert expires_at_ms(encode_properties({"TTL": ttl}), BORN_MS) == end_ms


def test_without_a_ttl_nothing_ends():
    assert not is_expired(encode_properties({"XTTL": "1", "a": "TTL"}), BORN_MS, 1 << 60)


def test_a_message_is_expired_from_its_end_on():
    raw = encode_properties({"TTL": "10"})
    assert [is_expired(raw, BORN_MS, now_ms) for now_ms in (1_009, 1_010, 1_011)] == [False, True, True]
