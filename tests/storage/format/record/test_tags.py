"""Tags codes are Java's ``String.hashCode``, over UTF-16 units, with 32-bit wrap and sign."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seglog.storage.format.record.tags import java_string_hash, tags_code
from tests.support.rows import every_row

HASHES = (
    ("", 0),
    ("a", 97),
    ("TagA", 2598919),
    ("Aa", 2112),
    ("BB", 2112),
    ("polygenelubricants", -(2**31)),
    ("Größe", 69209585),
    ("标签", 857175),
    ("𝄞", 1772394),  # D834 DD1E: 31 * 0xD834 + 0xDD1E
    ("😀tag", 1276941143),
    ("\ud834", 0xD834),
    ("a\0", 97 * 31),
)


def test_hash_is_javas():
    with every_row() as row:
        for text, code in HASHES:
            with row(text, code):
                assert java_string_hash(text) == code


@given(st.text(st.characters()))
def test_hash_runs_over_utf16_units_and_wraps_at_32_bits(text):
    units = np.frombuffer(text.encode("utf-16-be", "surrogatepass"), ">u2")
    code = 0
    for unit in units.tolist():
        code = code * 31 + unit
    assert java_string_hash(text) == int(np.array(code % 2**32, "u4").view("i4"))


def test_no_tag_and_the_empty_tag_have_code_zero():
    assert tags_code(None) == tags_code("") == 0
