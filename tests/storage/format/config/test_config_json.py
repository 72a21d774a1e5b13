"""RocketMQ's config files are read in every shape that its versions write, and nothing else is."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import CorruptError
from seglog.storage.format.config.config_json import MAX_DEPTH, decode_closely, decode_config, encode_config
from tests.support.material.config_files import read_config
from tests.support.rows import every_row

GOLDEN = Path(__file__).parents[3] / "golden" / "config"
REAL = sorted(GOLDEN.rglob("*.json"))

TEXT = st.text(st.characters(exclude_categories=[]), max_size=8)
KEYS = TEXT | st.integers(-(10**18), 10**18)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**39), 10**39)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


def test_there_are_real_files_of_both_dialects():
    assert {path.parent.name for path in REAL} == {"broker-5.4.0", "conf-5.3.3", "conf-5.4.0"}


def test_real_files_keep_their_content_through_a_round_trip():
    with every_row() as row:
        for path in REAL:
            with row(path):
                value = read_config(path)
                assert decode_config(encode_config(value)) == value


@pytest.mark.parametrize("name", ["consumerOffset", "topics", "subscriptionGroup", "delayOffset"])
@pytest.mark.parametrize("version", ["broker-5.4.0", "conf-5.4.0"])
def test_writes_the_very_bytes_of_rocketmq_5_4(version, name):
    text = (GOLDEN / version / f"{name}.json").read_text()
    assert encode_config(decode_config(text)) == text


def test_reads_the_offsets_that_5_3_3_committed():
    table = read_config(GOLDEN / "conf-5.3.3" / "consumerOffset.json")
    assert table["offsetTable"]["TopicX@grpA"] == {0: 12, 1: 5}


def test_integer_keys_stay_unquoted_and_quoted_ones_quoted():
    assert decode_config('{0:12,"1":5}') == {0: 12, "1": 5}
    assert encode_config({0: 12, "1": 5}) == '{\n\t0:12,\n\t"1":5\n}'


def test_object_keys_become_the_text_of_the_object():
    text = '{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"t"}:{"minOffset":3}}}'
    assert decode_config(text) == {
        "offsetTable": {'{"brokerName":"b","queueId":0,"topic":"t"}': {"minOffset": 3}}
    }


@given(VALUES)
def test_what_is_written_is_read_back(value):
    assert decode_config(encode_config(value)) == value
    assert decode_config(encode_config(value).encode()) == value


def test_half_of_a_surrogate_pair_is_written_as_an_escape():
    assert encode_config({"\ud800": "\udfff é"}) == '{\n\t"\\ud800":"\\udfff \\u00e9"\n}'


@given(VALUES)
def test_standard_json_is_read_as_json_reads_it(value):
    text = json.dumps(value)
    assert decode_config(text) == json.loads(text)


@given(st.binary(max_size=60))
def test_arbitrary_bytes_raise_nothing_but_our_error(data):
    with contextlib.suppress(CorruptError):
        decode_config(data)


@given(st.sampled_from(REAL), st.data())
def test_a_real_file_with_flipped_bits_or_cut_short_raises_nothing_but_our_error(path, data):
    damaged = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(damaged) - 1))
    damaged[at] ^= data.draw(st.integers(1, 255))
    end = data.draw(st.integers(0, len(damaged)))
    for torn in (bytes(damaged), bytes(damaged[:end])):
        with contextlib.suppress(CorruptError):
            decode_config(torn)


NO_CONFIG = (
    "",
    "{",
    '{"a":1',
    '{"a" 1}',
    '{"a":1,}',
    "[1,]",
    "[1 2]",
    "{a:1}",
    "{01:1}",
    "{99999999999999999999:1}",
    "01",
    "1.",
    "1e999",
    "NaN",
    "-",
    "nul",
    '"abc',
    '"\\x"',
    "{} {}",
    "9" * 41,
    "[" * (MAX_DEPTH + 2),
    "[" * 100_000,
    '{"a":' * 100_000,
    "{{" * 100_000,
)


def test_what_is_not_the_dialect_is_refused():
    with every_row() as row:
        for text in NO_CONFIG:
            with row(text), pytest.raises(CorruptError, match="config-json"):
                decode_config(text)


def test_the_error_says_where_in_bytes():
    with pytest.raises(CorruptError) as caught:
        decode_config('{"тема":12,"x":?}')
    assert caught.value.position_bytes == '{"тема":12,"x":?}'.encode().index(b"?")


def test_blanks_are_passed_over_at_once():
    text = '{"a":' + " \n\t\r" * 6_000_000 + "x"
    begun_s = time.process_time()
    with pytest.raises(CorruptError):
        decode_closely(text)
    assert time.process_time() - begun_s < 1
