"""Damaged frames lead to errors of the protocol and to nothing else, and never take much memory."""

from __future__ import annotations

import gc
import random
import tracemalloc

import pytest

from seglog.errors import FrameError, ProtocolError
from seglog.remoting.codec import Answered, Asked, Codec, Unasked, WronglyAsked
from seglog.remoting.command import Request
from seglog.remoting.frames.reader import FrameReader
from tests.support.captured import captured, captured_frames
from tests.support.scale import commit_seed, repeatable, scaled

FRAMES = scaled(60_000, 5_000_000)
ROUNDS = 10
MOST_BYTES = 1 << 20
FRAMES_SEEN = captured_frames()
CODES = sorted({one.code for one in captured()})
VALUES = (
    b"",
    b"0",
    b"-1",
    b"9" * 30,
    b'"',
    b"{",
    b"[",
    b"null",
    b"1e9",
    b"\\",
    b"\xff",
    b"\0",
    b"\x7f\xff\xff\xff",
)


def damaged(data, chance):
    """Returns a frame with some of its bytes changed, gone or doubled; its lengths mostly right again."""
    body = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(body))
        match chance.randrange(6):
            case 0:
                body[at] ^= 1 << chance.randrange(8)
            case 1:
                del body[at : at + chance.randint(1, 40)]
            case 2:
                body[at:at] = chance.choice(VALUES)
            case 3:
                body[at:at] = body[at : at + chance.randint(1, 200)]
            case 4:
                other = chance.choice(FRAMES_SEEN)
                body[at:] = other[chance.randrange(len(other)) :]
            case _:
                body[at:at] = chance.choice(b"{[").to_bytes(1, "big") * chance.choice((1, 40, 5_000))
        if len(body) < 9:
            body += bytes(9)
    if chance.random() < 0.8:
        body[:4] = (len(body) - 4).to_bytes(4, "big")
    if chance.random() < 0.5:
        word = int.from_bytes(body[4:8], "big")
        body[5:8] = min(word & 0xFFFFFF, len(body) - 8).to_bytes(3, "big")
    return bytes(body)


def outcome(data, chance):
    """Returns what kind of thing came of a frame, read by an end that waits for answers."""
    codec = Codec()
    codec._waiting.update((opaque, chance.choice(CODES)) for opaque in range(200))
    try:
        events = list(codec.receive(data))
    except FrameError:
        return FrameError
    kinds = {type(event) for event in events}
    assert kinds <= {Asked, WronglyAsked, Answered, Unasked}
    for event in events:
        if isinstance(event, Asked | WronglyAsked):
            assert isinstance(event.request, Request)
    errors = [event.answer for event in events if isinstance(event, Answered)]
    assert all(not isinstance(error, Exception) or isinstance(error, ProtocolError) for error in errors)
    return max(kinds, key=lambda kind: kind.__name__, default=None)


def memory_bytes(data, chance):
    """Returns the most memory that the process takes more while a frame is read."""
    tracemalloc.reset_peak()
    before_bytes, _ = tracemalloc.get_traced_memory()
    outcome(data, chance)
    return tracemalloc.get_traced_memory()[1] - before_bytes


@pytest.mark.parametrize("number", range(ROUNDS))
def test_damaged_frames_lead_to_typed_errors(number):
    seed = commit_seed()
    chance = random.Random(f"{seed}-{number}")
    with repeatable(seed):
        seen = {outcome(damaged(chance.choice(FRAMES_SEEN), chance), chance) for _ in range(FRAMES // ROUNDS)}
    assert seen >= {FrameError, Asked, WronglyAsked, Answered}


def test_damaged_frames_take_little_memory():
    seed = commit_seed()
    chance = random.Random(f"{seed}-memory")
    tracemalloc.start()
    try:
        with repeatable(seed):
            for _ in range(FRAMES // ROUNDS // 10):
                data = damaged(chance.choice(FRAMES_SEEN), chance)
                state = chance.getstate()
                if memory_bytes(data, chance) < MOST_BYTES:
                    continue
                # What is freed of other tests, and a thread of theirs, count too; a frame takes it each time.
                gc.collect()
                chance.setstate(state)
                assert memory_bytes(data, chance) < MOST_BYTES
    finally:
        tracemalloc.stop()


def test_a_frame_that_never_ends_takes_no_more_than_its_limit():
    reader = FrameReader()
    tracemalloc.start()
    try:
        list(reader.feed((16 << 20).to_bytes(4, "big") + b"\0\0\0\2{}"))
        for _ in range(1_000):
            list(reader.feed(b"x" * 1_000))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert reader.begun_bytes == 10 + 1_000_000
    assert peak_bytes < 4 << 20
