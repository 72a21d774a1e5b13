"""Headers that are read and written natively are what Python makes of them; others are left to it."""

from __future__ import annotations

import dataclasses
import json
import random
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import SeglogError
from seglog.remoting import headers
from seglog.remoting.exchanges import EXCHANGES
from seglog.remoting.frames import json_header
from seglog.remoting.frames.frame import Frame, Serialization
from seglog.remoting.frames.limits import DEFAULT_LIMITS, Limits
from seglog.remoting.headers import (
    GetMaxOffsetHeader,
    SendMessageHeader,
    decode_header,
    encode_header,
    fields_of,
)
from seglog.storage.kernels import wire_headers
from tests.support.captured import captured_frames
from tests.support.machine.kernels import BOTH, native
from tests.support.rows import each_row

JSON = [
    header
    for data in captured_frames()
    if data[4] == Serialization.JSON
    for header in [bytes(data[8 : 8 + int.from_bytes(data[5:8], "big")])]
]
SEND = json.dumps(
    {
        "code": 310,
        "extFields": {"a": "group", "b": "Orders", "i": 'KEYS\x01"k"\\\x02\tTAGS\x01Größe\x02', "e": "-3"},
        "flag": 0,
        "language": "JAVA",
        "opaque": 7,
        "remark": "",
        "serializeTypeCurrentRPC": "JSON",
        "version": 493,
    }
).encode()
ODD = [
    b"",
    b"{",
    b"{}",
    b"{ }",
    b"{}x",
    b' \t\r\n{"code" : 1 , "flag":0 } ',
    b'{"code":1,}',
    b'{"code":01}',
    b'{"code":-0}',
    b'{"code":- 1}',
    b'{"code":1.0}',
    b'{"code":1e1}',
    b'{"code":"310"}',
    b'{"code":999999999}',
    b'{"code":2147483647}',
    b'{"code":2147483648}',
    b'{"code":null,"language":null,"extFields":null,"remark":null}',
    b'{"code":1,"code":2}',
    b'{"language":"KLINGON"}',
    b'{"language":7}',
    b'{"extFields":{}}',
    b'{"extFields":{"a":"1","a":"1"}}',
    b'{"extFields":{"a":1,"b":null,"c":true,"d":[1]}}',
    b'{"extFields":{"a":"\\ud83d\\ude00"}}',
    b'{"extFields":{"a":"\\ud83d"}}',
    b'{"extFields":{"a":"\\u00e9\\u0000\\u20AC\\/\\b\\f\\n\\r\\t\\"\\\\"}}',
    b'{"extFields":{"a":"\\x41"}}',
    b'{"extFields":{"a":"\\u12"}}',
    b'{"extFields":{"a":"\\u 123"}}',
    b'{"extFields":{"a":"\\',
    b'{"extFields":{"a":"\\"}',
    b'{"extFields":{"a":"\x01\x02\n"}}',
    b'{"extFields":{"a":"\xc3\xa9\xf0\x9f\x98\x80"}}',
    b'{"extFields":{"a":"\xff"}}',
    b'{"extFields":{"a":"\xed\xa0\x80"}}',
    b'{"extFields":[],"flag":0}',
    b'{"other":"of a later version","code":5}',
    b'{"c\\u006fde":5}',
    b"[1]",
    b"\xef\xbb\xbf{}",
    b'{"code":5}\x00',
]


@contextmanager
def python():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_header, "native_read", None)
        patch.setattr(json_header, "native_write", None)
        patch.setattr(headers, "native_read_fields", None)
        patch.setattr(headers, "native_write_fields", None)
        yield


@contextmanager
def natively():
    module = native()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_header, "native_read", module.read_header)
        patch.setattr(json_header, "native_write", module.write_header)
        patch.setattr(headers, "native_read_fields", module.read_fields)
        patch.setattr(headers, "native_write_fields", module.write_fields)
        yield


def said_of(call, *arguments):
    """Returns what a call returns or raises, with the types of what it is made of."""
    try:
        found = call(*arguments)
    except SeglogError as error:
        return type(error), str(error)
    return repr(found), found


def both(call, *arguments):
    with python():
        expected = said_of(call, *arguments)
    with natively():
        assert said_of(call, *arguments) == expected
    return expected


def damaged(seed, header):
    dice, data = random.Random(seed), bytearray(header)
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(data) + 1)
        if dice.random() < 0.5:
            data[at : at + dice.randint(0, 3)] = dice.choice(
                [b'"', b"\\", b"{", b"}", b":", b",", b"\\u00", b"\xc3", b"0", b"-", b" ", b""]
            )
        elif at < len(data):
            data[at] = dice.randrange(256)
    return bytes(data)


@each_row("header", ODD)
def test_odd_headers_are_read_the_same(header):
    both(json_header.decode_json_header, header, b"", DEFAULT_LIMITS)


def test_headers_of_clients_and_brokers_are_read_natively_and_the_same():
    read = native().read_header
    assert len(JSON) > 100
    for header in JSON:
        both(json_header.decode_json_header, header, b"", DEFAULT_LIMITS)
    assert sum(read(header, 1_024) is None for header in JSON) <= len(JSON) // 50
    assert read(SEND, 1_024) is not None


@given(st.integers(0, 1 << 32), st.sampled_from([SEND, *JSON]))
def test_damaged_headers_are_read_the_same(seed, header):
    both(json_header.decode_json_header, damaged(seed, header), b"", DEFAULT_LIMITS)


@pytest.mark.parametrize("most", [0, 3, 4, 5])
def test_more_fields_than_there_may_be_are_refused_the_same(most):
    found = both(json_header.decode_json_header, SEND, b"", Limits(ext_fields=most))
    assert isinstance(found[1], Frame) is (most >= 4)


TEXTS = st.text(max_size=12)  # with halves of surrogate pairs
NUMBERS = st.integers(-(2**31), 2**31 - 1)


@given(
    st.builds(
        Frame,
        NUMBERS | st.sampled_from([0, 10, 310]),
        st.sampled_from(["JAVA", "PYTHON", "OTHER"]),
        NUMBERS,
        NUMBERS,
        st.sampled_from([0, 1, 2, 3]),
        st.none() | TEXTS,
        st.none() | st.dictionaries(TEXTS, TEXTS, max_size=5),
    )
)
def test_headers_are_written_the_same(frame):
    both(json_header.encode_json_header, frame)


def test_a_header_of_other_values_than_a_frame_has_is_left_to_python():
    write = native().write_header
    usual = (0, {"a": "b"}, 1, "JAVA", 2, None, "JSON", 493)
    assert json.loads(write(*usual))["extFields"] == {"a": "b"}
    for at, other in [(0, True), (0, 1 << 64), (1, {"a": 1}), (1, {1: "a"}), (1, []), (3, None), (5, b"x")]:
        assert write(*usual[:at], other, *usual[at + 1 :]) is None
    with pytest.raises(TypeError):
        write(0)


KINDS = sorted(
    {(each.request, id(each.request_names)): each for each in EXCHANGES.values()}.values(),
    key=lambda each: each.request.__name__,
)
VALUES = st.sampled_from(
    (
        *("0", "-1", "+7", "007", "", " 1", "1 ", "x", "true", "TRUE", "false", "no", "2147483647"),
        *("2147483648", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "9" * 21),
        *("٣", "é", "\ud800"),
    )
)


@given(st.data(), st.sampled_from(KINDS))
def test_fields_are_read_the_same(data, exchange):
    kind, names = exchange.request, exchange.request_names
    wire = list((names or kind.WIRE).values())
    ext = data.draw(st.dictionaries(st.sampled_from([*wire, "else"]), VALUES))
    both(decode_header, kind, ext, names)


@pytest.mark.parametrize("kernels", BOTH)
def test_a_send_is_read_as_it_was_written(kernels):
    sent = SendMessageHeader(
        "group", "Orders", "TBW102", 4, 1, 0, 5, 0, b"TAGS\x01a\x02", reconsume_times=3, is_batch=True
    )
    with natively() if kernels == "native" else python():
        ext = encode_header(sent, SendMessageHeader.WIRE_V2)
        assert decode_header(SendMessageHeader, ext, SendMessageHeader.WIRE_V2) == sent


def header_values(kind):
    """Returns what may stand in the attributes of a class, and what may not."""
    by_kind = {
        wire_headers.TEXT: TEXTS,
        wire_headers.I32: NUMBERS,
        wire_headers.I64: st.integers(-(2**70), 2**70),
        wire_headers.BOOL: st.booleans(),
        wire_headers.BYTES: st.binary(max_size=9) | st.just("ü".encode()),
    }
    usual = {field.name: by_kind[field.kind] for field in fields_of(kind)}
    return st.builds(kind, **{name: st.none() | values for name, values in usual.items()})


CLASSES = sorted(
    {kind for each in EXCHANGES.values() for kind in (each.request, each.response)},
    key=lambda kind: kind.__name__,
)


@given(st.data(), st.sampled_from(CLASSES))
def test_fields_are_written_the_same(data, kind):
    both(encode_header, data.draw(header_values(kind)))


def test_values_of_other_kinds_are_written_the_same():
    class Number(int):
        """Not the exact type."""

    for queue_id in (True, Number(3), 1 << 70):
        both(encode_header, GetMaxOffsetHeader("T", queue_id))


def test_headers_have_slots_and_nothing_that_a_constructor_does():
    """What is read natively comes about without it."""
    for kind in CLASSES:
        assert not hasattr(kind, "__post_init__")
        assert kind.__dictoffset__ == 0
        assert all(field.default_factory is dataclasses.MISSING for field in dataclasses.fields(kind))


def test_a_plan_that_is_none_is_an_error_of_its_writer():
    read, kind = native().read_fields, GetMaxOffsetHeader
    with pytest.raises(TypeError):
        read(kind, {}, [("topic", "a", wire_headers.TEXT, None)])
    assert read(kind, {"a": "1"}, ((1, 2),)) is None
    assert read(kind, {"a": "1"}, (("topic", "a", 7, None),)) is None
    assert read(kind, {"a": "1"}, (("nothing", "a", 0, None),)) is None
    assert native().write_fields(kind("T", 1), ((1, 2),)) is None
