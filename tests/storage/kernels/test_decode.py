"""A message decoded in C is the one that Python decodes, and an error is the same error."""

from __future__ import annotations

import gc
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import CorruptError, TruncatedError
from seglog.storage.format.record.host import Host
from seglog.storage.format.record.message import Message, decode_message, new_host
from tests.support.machine.kernels import native
from tests.support.material.records import Record, records


def decoder(**other):
    given_ = {"message": Message, "host": new_host, "slow": decode_message} | other
    return native().Decoder(*given_.values()).decode


def outcome(decode, data, verify):
    try:
        message = decode(data, verify=verify)
    except (CorruptError, TruncatedError) as error:
        return type(error), error.args, str(error)
    return message, vars(message)


@given(st.lists(records(), min_size=1, max_size=5), st.booleans())
def test_messages_are_equal_field_by_field(several, verify):
    decode = decoder()
    for record in several:
        data = record.pack()
        assert outcome(decode, data, verify) == outcome(decode_message, data, verify)
        assert [type(value) for value in vars(decode(data)).values()] == [
            type(value) for value in vars(decode_message(data)).values()
        ]


@given(records(), st.data(), st.booleans())
def test_damage_is_told_in_the_same_words(record, data, verify):
    packed = bytearray(record.pack())
    for _ in range(data.draw(st.integers(1, 3))):
        packed[data.draw(st.integers(0, len(packed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    cut = bytes(packed[: data.draw(st.integers(0, len(packed)))])
    for damaged in (bytes(packed), cut):
        assert outcome(decoder(), damaged, verify) == outcome(decode_message, damaged, verify)


def test_a_right_record_never_reaches_python():
    def slow(_record, *, verify):
        raise AssertionError(verify)

    assert decoder(slow=slow)(Record(body=b"b").pack(), verify=True).body == b"b"
    with pytest.raises(AssertionError):
        decoder(slow=slow)(b"")


def test_hosts_and_topics_are_not_mixed_up():
    decode = decoder()
    for number in range(200):
        record = Record(
            topic=b"T%d" % (number % 7), born_address=bytes([10, 0, number % 9, 1]), born_port=number % 64
        )
        message = decode(record.pack())
        assert message.topic == f"T{number % 7}"
        assert message.born_host == Host(bytes([10, 0, number % 9, 1]), number % 64)


def test_a_message_keeps_what_it_computed_and_cannot_be_changed():
    message = decoder()(Record(properties=b"KEYS\x01a b\x02").pack())
    assert message.properties is message.properties
    assert message.keys == ["a", "b"]
    with pytest.raises(AttributeError):
        message.body = b""


def test_wrong_arguments_are_refused():
    decode, data = decoder(), Record().pack()
    for arguments, named in (((), {}), ((data, True), {}), ((data,), {"verified": True}), (("text",), {})):
        with pytest.raises(TypeError):
            decode(*arguments, **named)
    with pytest.raises(BufferError):
        decode(memoryview(data * 2)[::2])
    with pytest.raises(TypeError):
        native().Decoder("Message", new_host, decode_message)


def test_errors_of_a_host_are_passed_on_and_nothing_leaks():
    def no_host(_address, _port):
        raise LookupError("no host")

    data = Record().pack()
    with pytest.raises(LookupError):
        decoder(host=no_host)(data)
    decode = decoder()
    for _ in range(3):
        decode(data)
    gc.collect()
    before = sys.getrefcount(None)
    for _ in range(1000):
        decode(data, verify=True)
    gc.collect()
    assert sys.getrefcount(None) < before + 500
