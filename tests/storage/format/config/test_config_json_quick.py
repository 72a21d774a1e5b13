"""The quick reader of config JSON: what it reads is what the close reader reads."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import CorruptError
from seglog.storage.format.config.config_json import MAX_DEPTH, decode_closely, encode_config
from seglog.storage.format.config.config_json_quick import decode_quickly
from tests.support.rows import every_row

CONFIG = Path(__file__).parents[3] / "golden" / "config"

TABLE = '{"dataVersion":{"counter":1},"offsetTable":{"T@g":{0:12,1:5},"U@g":{\n\t}}}'


def quickly(text):
    return decode_quickly(text, MAX_DEPTH)


def test_real_files_are_read_alike():
    with every_row() as row:
        for path in sorted(CONFIG.glob("*/*.json")):
            with row(path):
                text = path.read_text()
                found = quickly(text)
                if "{{" in text:
                    assert found is None, "objects as keys are for the close reader"
                else:
                    assert found == (decode_closely(text),)


OF_THE_DIALECT = (
    TABLE,
    "null",
    " [1, -2.5e3, true]\n",
    '{"5":1,5:2,-7:3,0:4}',
    r'{"a\"{1:2,":"x,3:4","b":{"\\":{9:1}}}',
    '{"line\nbreak":"tab\there"}',
    r'"\ud83d"',
    "[" * MAX_DEPTH + "]" * MAX_DEPTH,
    '{"a":1,"a":2,3:1,3:2}',
    '"\0"',
    r'{"\u00005":1}',
    r'{"a\\":"[","]\"{":[[""],["",""],"{"],"":{}}',
)


def test_texts_of_the_dialect_are_read_alike():
    with every_row() as row:
        for text in OF_THE_DIALECT:
            with row(text):
                found = quickly(text)
                assert found == (decode_closely(text),)
                assert repr(found[0]) == repr(decode_closely(text)), (
                    "1, 1.0 and True are equal and not the same"
                )


NOT_QUICK = (
    "",
    "{1:2",
    "{01:2}",
    "[NaN]",
    "[-Infinity]",
    "[1e999]",
    '{"a":' + "1" * 41 + "}",
    "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
    "[" * 100_000,
    '{5:"\0"}',
    r'{"\u00005":1,5:1}',
    "{} {}",
    "]",
    '{{"topic":"T"}:1}',
    '{"a":1,}',
    "{12345678901234567890:1}",
)


def test_everything_else_is_left_to_the_close_reader():
    with every_row() as row:
        for text in NOT_QUICK:
            with row(text):
                assert quickly(text) is None


_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(1 << 63), 1 << 63), st.floats(allow_nan=False), st.text()
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.text(), st.integers(-(10**18), 10**18)), inner, max_size=4),
    ),
    max_leaves=20,
)


@given(_VALUES, st.data())
def test_any_value_and_any_damage_is_read_alike(value, data):
    text = encode_config_or_none(value)
    if text is None:
        return
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(text)))
        text = (
            text[:at]
            + data.draw(st.sampled_from(['"', "{", "}", ":", ",", "0", "1:", "\\", ""]))
            + text[at + 1 :]
        )
    found = quickly(text)
    if found is not None:
        assert repr(found[0]) == repr(decode_closely(text))
    elif "\0" not in text and "\\u0000" not in text and not any(len(run) > 19 for run in digits(text)):
        with pytest.raises(CorruptError):
            decode_closely(text)


def encode_config_or_none(value):
    try:
        return encode_config(value)
    except ValueError:
        return None  # infinite


def digits(text):
    return "".join(each if each.isdigit() else " " for each in text).split()


@pytest.mark.parametrize(
    "text",
    ['{"a":"' + r"\"" * 1_000_000, "{1:" + r'"\"' * 500_000, '["' + "\\" * 999_999, '"' * 1_000_001],
    ids=["a string without end", "strings without end", "no end behind a backslash", "quotes"],
)
def test_a_text_that_ends_in_a_string_is_left_to_the_close_reader_soon(text):
    began_s = time.process_time()
    assert quickly(text) is None
    with pytest.raises(CorruptError):
        decode_closely(text)
    assert time.process_time() - began_s < 5
