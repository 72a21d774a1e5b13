"""Names of files are RocketMQ's; names of topics, groups and queues can never lead out of the store."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import InvalidNameError
from seglog.storage.format.names import (
    can_name_directory,
    check_group,
    check_queue_id,
    check_topic,
    parse_segment_file_name,
    segment_file_name,
)
from tests.support.rows import every_row

GOOD = [
    "a",
    "TopicTest",
    "%RETRY%group-1",
    "%DLQ%g",
    "%LMQ%a|b",
    "0",
    "_",
    "-",
    "a" * 127,
    "a" * 128,
    "a" * 255,
]
BAD = {
    "empty": "",
    "newline at the end": "a\n",
    "newline alone": "\n",
    "parent folder": "../x",
    "dot": ".",
    "two dots": "..",
    "dot inside": "a.b",
    "slash": "a/b",
    "backslash": "a\\b",
    "NUL": "a\0b",
    "space": "a b",
    "256 long": "a" * 256,
    "unicode digits": "topic١٢",
    "fullwidth letters": "ｔｏｐｉｃ",
    "letter with an accent": "topié",
    "half of a pair": "\ud800",
    "property separators": "a\x01b\x02",
}


def test_legal_name_is_returned():
    with every_row() as row:
        for name in GOOD:
            for check in (check_topic, check_group):
                with row(name, check):
                    assert check(name) == name


def test_illegal_name_is_refused_and_quoted():
    with every_row() as row:
        for case, name in BAD.items():
            for check, kind in ((check_topic, "topic"), (check_group, "group")):
                with row(case, check, kind):
                    with pytest.raises(InvalidNameError, match=f"^the {kind} name") as refused:
                        check(name)
                    assert "\n" not in str(refused.value)
                    assert len(str(refused.value)) < 200


@given(st.text())
def test_only_the_documented_characters_pass(name):
    try:
        check_topic(name)
    except InvalidNameError:
        assert not re.fullmatch(r"[%|a-zA-Z0-9_-]{1,255}", name, re.ASCII)
    else:
        assert all(character in "%|_-" or (character.isascii() and character.isalnum()) for character in name)


@pytest.mark.parametrize("queue_id", [0, 1, 2**31 - 1])
def test_queue_id_has_31_bits(queue_id):
    assert check_queue_id(queue_id) == queue_id


@pytest.mark.parametrize("queue_id", [-1, 2**31, -(2**31), 10**30])
def test_queue_id_outside_is_refused(queue_id):
    with pytest.raises(InvalidNameError, match=r"^queue_id="):
        check_queue_id(queue_id)


@given(st.integers(0, 2**63 - 1))
def test_file_name_is_twenty_digits_and_reads_back(first_offset):
    name = segment_file_name(first_offset)
    assert re.fullmatch(r"[0-9]{20}", name)
    assert parse_segment_file_name(name) == first_offset


NO_SEGMENTS = (
    "",
    "0",
    "0" * 19,
    "0" * 21,
    "0" * 20 + "\n",
    "-" + "0" * 19,
    "٠" * 20,
    "0" * 19 + "x",
    " " + "0" * 19,
)


def test_other_names_are_no_segment_files():
    with every_row() as row:
        for name in NO_SEGMENTS:
            with row(name):
                assert parse_segment_file_name(name) is None


@pytest.mark.parametrize("name", [str(2**63).rjust(20, "0"), "9" * 20])
def test_name_beyond_63_bits_is_no_segment_file(name):
    assert parse_segment_file_name(name) is None


FOLDERS = (
    ("T", True),
    ("a b", True),
    ("Größe", True),
    ("...", True),
    ("x" * 255, True),
    ("a\n", True),
    ("", False),
    (".", False),
    ("..", False),
    ("a/b", False),
    ("/", False),
    ("../x", False),
    ("a\0", False),
    ("x" * 256, False),
    ("ü" * 128, False),
    ("\udcff", True),
    ("\ud800", False),
)


def test_folder_can_be_called_like_a_found_topic():
    with every_row() as row:
        for topic, can in FOLDERS:
            with row(topic, can):
                assert can_name_directory(topic) is can
