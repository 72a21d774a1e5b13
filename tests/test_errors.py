"""Errors carry what a person, a program and a client need, and no two classes share an exit code."""

from __future__ import annotations

import copy
import pickle
import traceback

import pytest

from seglog.errors import (
    CorruptError,
    OffsetRangeError,
    RemoteProtocolError,
    SeglogError,
    StoreError,
    TruncatedError,
    error_classes,
)
from tests.support.rows import each_row

CLASSES = error_classes()


def _through_pickle(error):
    return pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes


def test_tree_begins_with_its_root_and_names_each_class_once():
    assert CLASSES[0] is SeglogError
    assert len(set(CLASSES)) == len(CLASSES) > 20


def test_no_two_classes_share_an_exit_code():
    codes = [error.exit_code for error in CLASSES]
    assert len(set(codes)) == len(codes)


@each_row("error", CLASSES)
def test_class_says_what_to_do_and_how_to_end(error):
    assert error.exit_code in range(3, 100)
    assert error.response_code > 0
    assert error.help
    assert error.help[0] not in ".,;"
    assert error.__doc__


def test_one_error_can_give_better_advice_than_its_class():
    error = StoreError("no", help="look there")
    assert (str(error), error.help, StoreError("no").help) == ("no", "look there", StoreError.help)


def test_a_traceback_ends_with_the_advice_and_with_notes_that_were_added():
    error = StoreError("no", help="look there")
    error.add_note("in the third try")
    shown = "".join(traceback.format_exception(error)).splitlines()
    assert shown[-3:] == ["seglog.errors.StoreError: no", "help: look there", "in the third try"]


def test_corrupt_error_says_where_what_and_what_instead():
    error = CorruptError(
        "body-crc", file="commitlog/0", position_bytes=4096, expected="0x3c4d", found="0x1a2b"
    )
    assert str(error) == "commitlog/0 +4096: body-crc: found 0x1a2b, expected 0x3c4d"


def test_corrupt_error_without_a_file_speaks_of_the_buffer():
    assert str(TruncatedError("short")) == "buffer +0: short"


@pytest.mark.parametrize(
    "error",
    [
        StoreError("plain", help="own advice"),
        CorruptError("size", file="f", position_bytes=7, expected=1, found=2),
        OffsetRangeError("outside", min_offset=3, max_offset=9),
        RemoteProtocolError(13, "too large"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("carry", [copy.copy, _through_pickle])
def test_error_crosses_process_boundaries_unchanged(error, carry):
    other = carry(error)
    assert type(other) is type(error)
    assert str(other) == str(error)
    assert vars(other) == vars(error)


def test_the_answer_that_a_subscription_is_not_there_says_what_to_do():
    error = RemoteProtocolError(24, "the consumer's subscription not exist")
    assert "heartbeat" in error.help
    assert "subscribe alike" in error.help
    assert RemoteProtocolError(24, "x", help="ask").help == "ask"
    assert RemoteProtocolError(1, "x").help == RemoteProtocolError.help
