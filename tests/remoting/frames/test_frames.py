"""Frames are the bytes that official clients and brokers send, in any pieces; what is none is refused."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import FrameError
from seglog.remoting.frames.frame import Frame, Serialization
from seglog.remoting.frames.languages import LANGUAGES
from seglog.remoting.frames.limits import Limits
from seglog.remoting.frames.reader import FrameReader
from seglog.remoting.frames.writer import encode_frame
from tests.support.captured import captured_frames
from tests.support.rows import each_row

CAPTURED = captured_frames()
I32 = st.integers(-(2**31), 2**31 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def any_frame(form):
    is_binary = form is Serialization.ROCKETMQ
    return st.builds(
        Frame,
        st.integers(-(2**15), 3_000) if is_binary else I32,
        st.sampled_from(LANGUAGES),
        st.integers(-(2**15), 2**15 - 1) if is_binary else I32,
        I32,
        st.sampled_from([0, 1, 2, 3]),
        st.none() | TEXT.filter(bool),
        st.none() | st.dictionaries(TEXT, TEXT, min_size=1 if is_binary else 0, max_size=5),
        st.binary(max_size=30),
        st.just(form),
    )


def encoded(frame):
    return encode_frame(frame) + bytes(frame.body)


def json_frame(header, body=b""):
    data = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (4 + len(data) + len(body)).to_bytes(4, "big") + len(data).to_bytes(4, "big") + data + body


def read(data, limits=None):
    return list(FrameReader(*([] if limits is None else [limits])).feed(data))


def test_captured_frames_are_of_both_forms_and_of_both_kinds():
    frames = [frame for data in CAPTURED for frame in read(data)]
    kinds = {(frame.serialization.name, frame.is_response) for frame in frames}
    assert kinds == {("JSON", False), ("JSON", True), ("ROCKETMQ", False), ("ROCKETMQ", True)}
    assert len(frames) == len(CAPTURED) > 200


def test_captured_frames_are_written_as_they_were():
    for data in CAPTURED:
        (frame,) = read(data)
        assert encoded(frame) == data


@pytest.mark.parametrize("size_bytes", [1, 2, 3, 7, 8, 9, 64, 1_000, 65_536])
def test_captured_frames_are_the_same_in_any_pieces(size_bytes):
    stream = b"".join(CAPTURED)
    reader = FrameReader()
    found = []
    for at in range(0, len(stream), size_bytes):
        found += reader.feed(stream[at : at + size_bytes])
    assert found == [frame for data in CAPTURED for frame in read(data)]
    assert reader.begun_bytes == 0


@given(any_frame(Serialization.JSON) | any_frame(Serialization.ROCKETMQ), st.integers(1, 12))
def test_a_frame_survives_whole_and_in_pieces(frame, size_bytes):
    data = encoded(frame)
    assert read(data) == [frame]
    reader = FrameReader()
    found = [one for at in range(0, len(data), size_bytes) for one in reader.feed(data[at : at + size_bytes])]
    assert found == [frame]


def test_a_body_that_comes_in_one_piece_is_not_copied():
    data = json_frame({"code": 10}, b"x" * 1_000)
    (frame,) = read(data)
    assert frame.body.obj is data


def test_codes_of_pop_that_a_binary_header_cuts_are_known_again():
    for code in (200050, 200051, 200053, 200151):
        frame = Frame(code, "JAVA", 493, 7, serialization=Serialization.ROCKETMQ)
        assert read(encoded(frame)) == [frame]


def test_a_binary_answer_keeps_its_code():
    frame = Frame(3442 - 65536 // 2, "JAVA", 1, 1, 1, serialization=Serialization.ROCKETMQ)
    assert read(encoded(frame))[0].code == frame.code


def test_fields_of_any_kind_are_read_as_text_and_null_ones_as_absent():
    (frame,) = read(
        json_frame(b'{"code":"11","extFields":{"a":3,"b":true,"c":null,"d":{"e":[1]},"f":1e400,"g":1.50}}')
    )
    assert frame.code == 11
    assert frame.ext == {"a": "3", "b": "true", "d": '{"e":["1"]}', "f": "1e400", "g": "1.50"}


def test_what_a_header_does_not_have_is_zero_and_java():
    assert read(json_frame({})) == [Frame(0, "JAVA", 0, 0)]


def test_an_unknown_language_is_no_error():
    assert read(json_frame({"language": "COBOL"}))[0].language == "OTHER"
    assert read(json_frame({"language": 7}))[0].language == "OTHER"


WRONG_HEADERS = {
    "no JSON": b"{",
    "not UTF-8": b'{"remark":"\xff"}',
    "a list": b"[]",
    "a number": b"7",
    "fields that are a list": b'{"extFields":[]}',
    "33 bits": b'{"opaque":4294967296}',
    "a fraction": b'{"code":1.5}',
    "a long number": b'{"code":' + b"9" * 5_000 + b"}",
    "digits of another script": '{"code":"٣"}'.encode(),
    "digits with a line": b'{"code":"1_0"}',
    "digits with a space": b'{"code":" 1"}',
    "a name twice": b'{"code":1,"code":2}',
    "a field twice": b'{"extFields":{"a":"1","a":"2"}}',
    "no number of JSON": b'{"code":NaN}',
    "depth": b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "depth behind a string": b'{"b":"\\"[","a":' + b"[" * 50 + b"]" * 50 + b"}",
    "depth without end": b'{"a":' + b"[" * 100_000,
    "more behind it": b"{}{}",
}


@each_row("header", WRONG_HEADERS.values())
def test_a_header_that_is_none_is_refused(header):
    with pytest.raises(FrameError):
        read(json_frame(header))


_NAMES = b",".join(b'"%x":0' % number for number in range(80_000))
LARGE_HEADERS = {
    "many names, the last one twice": b"{" + _NAMES + b',"z":0,"z":0}',
    "many fields, the last one twice": b'{"extFields":{' + _NAMES + b',"z":0,"z":0}}',
    "many fields": b'{"extFields":{' + _NAMES + b"}}",
    "open brackets": b"[" * 1_000_000,
    "open brackets of objects": b'{"a":' * 200_000,
    "digits": b'{"code":' + b"9" * 1_000_000 + b"}",
}


@pytest.mark.parametrize("header", LARGE_HEADERS.values(), ids=LARGE_HEADERS)
def test_a_header_as_large_as_one_may_be_is_refused_soon(header):
    began_s = time.process_time()
    with pytest.raises(FrameError):
        read(json_frame(header))
    assert time.process_time() - began_s < 5


def test_brackets_in_strings_are_no_depth():
    (frame,) = read(json_frame({"extFields": {"i": "[{" * 1_000}}))
    assert frame.ext == {"i": "[{" * 1_000}


def binary_frame(tail, head=b"\0\x0a\0\1\xed\0\0\0\1\0\0\0\0"):
    data = head + tail
    return (4 + len(data)).to_bytes(4, "big") + (1 << 24 | len(data)).to_bytes(4, "big") + data


WRONG_BINARY = {
    "a head alone": b"",
    "a remark beyond its end": b"\0\0\0\x7f\0\0\0\0",
    "a negative remark": b"\xff\xff\xff\xff\0\0\0\0",
    "fields beyond its end": b"\0\0\0\0\0\0\0\x7f",
    "more behind its fields": b"\0\0\0\0\0\0\0\0x",
    "half a name": b"\0\0\0\0\0\0\0\1\0",
    "a name without value": b"\0\0\0\0\0\0\0\3\0\1a",
    "a negative name": b"\0\0\0\0\0\0\0\6\xff\xff\0\0\0\0",
    "a value beyond its end": b"\0\0\0\0\0\0\0\7\0\1a\0\0\0\1",
    "a field twice": b"\0\0\0\0\0\0\0\x0e" + b"\0\1a\0\0\0\0" * 2,
    "not UTF-8": b"\0\0\0\0\0\0\0\x08\0\1a\0\0\0\1\xff",
}


@each_row("tail", WRONG_BINARY.values())
def test_a_binary_header_that_is_none_is_refused(tail):
    with pytest.raises(FrameError):
        read(binary_frame(tail))


WRONG_LENGTHS = {
    "nothing": b"\0\0\0\0\0\0\0\0",
    "three bytes": b"\0\0\0\3\0\0\0\0",
    "above the limit": b"\1\0\0\1\0\0\0\0",
    "a negative length": b"\xff\xff\xff\xff\0\0\0\0",
    "a header longer than the frame": b"\0\0\0\x08\0\0\0\5",
    "a header above the limit": b"\0\xff\0\0\0\x20\0\0",
    "an unknown form": b"\0\0\0\x08\2\0\0\4",
    "another protocol": b"GET / HTTP/1.1\r\n\r\n",
    "TLS": b"\x16\3\1\2\0\1\0\1\xfc\3\3",
}


@each_row("data", [b"\xff\xff\xff\xff", b"\1\0\0\1", b"\0\0\0\3", b"HTTP"])
@each_row("size_bytes", [1, 2, 3, 4])
def test_a_length_that_cannot_be_is_refused_before_anything_follows_it(data, size_bytes):
    reader = FrameReader()
    with pytest.raises(FrameError, match="a frame says it has"):
        [list(reader.feed(data[at : at + size_bytes])) for at in range(0, 4, size_bytes)]


@each_row("data", WRONG_LENGTHS.values())
def test_lengths_that_cannot_be_are_refused_as_soon_as_they_are_there(data):
    reader = FrameReader()
    with pytest.raises(FrameError):
        [list(reader.feed(data[at : at + 1])) for at in range(8)]
    with pytest.raises(FrameError):
        read(data)


def test_a_frame_may_have_as_many_bytes_as_the_limit_says():
    limits = Limits(frame_bytes=1_000)
    size = 1_000 - 4 - len(json.dumps({"code": 10}))
    (frame,) = read(json_frame({"code": 10}, bytes(size)), limits)
    assert len(frame.body) == size
    with pytest.raises(FrameError):
        read(json_frame({"code": 10}, bytes(size + 1)), limits)
    with pytest.raises(FrameError):
        encode_frame(Frame(10, "JAVA", 1, 1, body=bytes(1_000)), limits)


def test_a_header_may_have_as_many_fields_as_the_limit_says():
    ext = {str(number): "" for number in range(10)}
    for form in Serialization:
        data = encoded(Frame(10, "JAVA", 1, 1, ext=ext, serialization=form))
        assert read(data, Limits(ext_fields=10))[0].ext == ext
        with pytest.raises(FrameError):
            read(data, Limits(ext_fields=9))


def test_a_name_that_a_binary_header_cannot_hold_is_refused():
    with pytest.raises(FrameError):
        encode_frame(Frame(1, "JAVA", 1, 1, ext={"n" * 32_768: ""}, serialization=Serialization.ROCKETMQ))


def test_headers_of_answers_may_be_long_and_those_of_requests_may_not():
    limits = Limits(header_bytes=200, answer_header_bytes=400)
    answer = Frame(0, "JAVA", 493, 7, 1, "x" * 250)
    request = Frame(10, "JAVA", 493, 7, 0, "x" * 250)
    data = encode_frame(answer, limits)
    assert list(FrameReader(limits, of_answers=True).feed(data)) == [answer]
    with pytest.raises(FrameError):
        read(data, limits)
    with pytest.raises(FrameError):
        encode_frame(request, limits)
    with pytest.raises(FrameError):
        encode_frame(Frame(0, "JAVA", 493, 7, 1, "x" * 500), limits)
