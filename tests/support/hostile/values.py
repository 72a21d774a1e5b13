"""Values that an attacker puts into a store: names, numbers, texts, noise."""

from __future__ import annotations

import json
import random
from typing import Final

UP: Final = "../outside/canary"
NAMES: Final = (
    UP,
    "../../outside/canary",
    "/outside/canary",
    "..",
    ".",
    "",
    "lock",
    "checkpoint",
    "commitlog/00000000000000000000",
    "seglog/undo/1/journal",
    "a/b",
    "a\0b",
    "x" * 255,
    "x" * 300,
    "\x1b]0;x\x07",
    "\u202egnp.exe",
    "%LMQ%../outside/canary",
    "%RETRY%../outside",
    "T\nFORGED",
    "-rf",
    "\ud800",
    "$(touch outside)",
    "Topic0",
)
NUMBERS: Final = (
    -1, 0, 1, 7, 255, 4095, 4096, 65535, 1 << 20, (1 << 30) + 3, (1 << 31) - 1, -(1 << 31), 1 << 31,
    (1 << 32) - 1, 1 << 40, 1 << 53, (1 << 62) + 1, (1 << 63) - 1, -(1 << 63), 1 << 63, 10**30,
)  # fmt: skip
FILE_NAMES: Final = (
    b"99999999999999999999",
    b"09223372036854775807",
    b"09223372036854771712",
    b"00000000000000000001",
    b"0" * 19,
    b"0" * 255,
    b"\xff\xfe\x9b",
    b"\x1b]0;x\x07",
    b"-rf",
    b"\xd9\xa3",
    b"a\nFORGED",
    b"lock",
    b"journal",
    b"x" * 255,
    b".own",
    b"0.bak",
    b"0.tmp",
)
TEXTS: Final = (
    b"[" * 100_000,
    b"{" * 100_000,
    b'{"a":' * 50_000,
    b"[]",
    b"{}",
    b"null",
    b"7",
    b'""',
    b'{"$ref":"$"}',
    b'{"a":{"$ref":"$.b"},"b":{"$ref":"$.a"}}',
    b"9" * 10_000,
    b"-" * 10_000,
    b"\xff" * 100,
    b"\xef\xbb\xbf{}",
    b"NaN",
    b"1e999999999",
    b"a:" * 50_000,
)


def number(dice: random.Random) -> int:
    """Returns a number that something may stumble over."""
    return dice.choice(NUMBERS) if dice.random() < 0.8 else dice.randrange(-(1 << 63), 1 << 63)


def fit(value: int, size_bytes: int) -> bytes:
    """Returns a number as so many bytes, big-endian."""
    return (value % (1 << 8 * size_bytes)).to_bytes(size_bytes, "big")


def noise(dice: random.Random, data: bytes) -> bytes:
    """Returns a file's content with something in it that is not as it was."""
    way = dice.randrange(9)
    if way == 0:
        return dice.randbytes(dice.choice((1, 100, max(1, len(data)), 70_000)))
    if way == 1:
        return data[: dice.randrange(len(data) + 1)]
    if way == 2:
        return data + bytes(dice.choice((1, 100, 4096, 1 << 20)))
    if way == 3:
        return b""
    if way == 4:
        return bytes([dice.choice((0, 255))]) * max(1, len(data))
    changed = bytearray(data or b"\0" * 64)
    for _change in range(dice.choice((1, 3, 20))):
        at = dice.randrange(len(changed))
        if way < 7:
            changed[at] ^= 1 << dice.randrange(8)
        else:
            width = dice.choice((2, 4, 8))
            start = at - at % width
            changed[start : start + width] = fit(number(dice), width)
    return bytes(changed)


def tree(dice: random.Random, data: bytes) -> bytes:
    """Returns a JSON file with another value or name somewhere, or a text of another kind."""
    if dice.random() < 0.25:
        return dice.choice(TEXTS)
    try:
        value = json.loads(data)
    except ValueError:
        return noise(dice, data)
    for _change in range(dice.choice((1, 2, 5))):
        value = _changed(dice, value)
    return json.dumps(value).encode("utf-8", "surrogatepass")


def lines(dice: random.Random, data: bytes) -> bytes:
    """Returns a file of JSON lines with one of them changed."""
    rows = data.splitlines() or [b"{}"]
    at = dice.randrange(len(rows))
    rows[at] = tree(dice, rows[at]).replace(b"\n", b" ")
    return b"\n".join(rows) + b"\n"


def _changed(dice: random.Random, value: object) -> object:
    if isinstance(value, dict) and value and dice.random() < 0.85:
        key = dice.choice(list(value))
        if dice.random() < 0.25:
            return {**value, dice.choice(NAMES): value[key]}
        return {**value, key: _changed(dice, value[key])}
    if isinstance(value, list) and value and dice.random() < 0.85:
        at = dice.randrange(len(value))
        return [*value[:at], _changed(dice, value[at]), *value[at + 1 :]]
    other: tuple[object, ...] = (
        number(dice),
        dice.choice(NAMES),
        None,
        True,
        [],
        {},
        [[]],
        {"a": []},
        0.5,
        "7",
    )
    return dice.choice(other)
