"""Epoch and identity files are read as the controller mode writes them, and damage is noticed."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import CorruptError, InvalidArgumentError
from seglog.storage.format.epoch import (
    BrokerIdentity,
    Epoch,
    decode_broker_identity,
    decode_epochs,
    encode_broker_identity,
    encode_epochs,
)

EPOCHS = st.lists(st.builds(Epoch, st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)))
PARTS = st.text(st.characters(exclude_characters="#\n", exclude_categories=["Cs"]), max_size=10)


def test_the_example_of_rocketmqs_own_documentation():
    assert decode_epochs(b"2\n773307083\n7-7000\n8-8000\n") == [(7, 7000), (8, 8000)]
    assert encode_epochs([Epoch(7, 7000), Epoch(8, 8000)]) == b"2\n773307083\n7-7000\n8-8000\n"


@given(EPOCHS)
def test_epochs_read_back_as_they_were_written(epochs):
    assert decode_epochs(encode_epochs(epochs)) == epochs


def test_a_crc_of_0_is_not_checked():
    assert decode_epochs(b"1\n0\n7-7000\n") == [(7, 7000)]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "epoch-head"),
        (b"1\n", "epoch-head"),
        (b"x\n0\n", "epoch-head"),
        (b"2\n0\n7-7000\n", "epoch-count"),
        (b"1\n5\n7-7000\n", "epoch-crc"),
        (b"1\n0\n7+7000\n", "epoch-entry"),
        (b"1\n0\n7--7000\n", "epoch-entry"),
        (b"\xff", "text"),
    ],
)
def test_damage_is_named(data, kind):
    with pytest.raises(CorruptError, match=kind):
        decode_epochs(data)


@given(st.builds(BrokerIdentity, PARTS, PARTS, st.integers(-(2**63), 2**63 - 1), st.none() | PARTS))
def test_an_identity_reads_back_as_it_was_written(identity):
    assert decode_broker_identity(encode_broker_identity(identity)) == identity


def test_the_separator_is_refused_in_a_part():
    with pytest.raises(InvalidArgumentError):
        encode_broker_identity(BrokerIdentity("a#b", "broker", 1))


@given(st.binary(max_size=40))
def test_arbitrary_bytes_raise_nothing_but_our_error(data):
    for decode in (decode_epochs, decode_broker_identity):
        with contextlib.suppress(CorruptError):
            decode(data)
    with contextlib.suppress(CorruptError):
        decode_broker_identity(b"a#b#" + data)
