"""How much the searching tests do, and what they draw from.

Three sizes: ``gate`` is what `make test` and CI run, ``usual`` what `make campaign` runs, ``full`` searches
long. ``--size`` chooses one, or the variable ``SEGLOG_TEST_SIZE``; ``--full`` is ``--size full``.

All that a test draws at random follows from the commit (:func:`commit_seed`): each commit is tried with draws
of its own, and a second run of it repeats them. ``SEGLOG_TEST_SEED`` chooses another.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import hashlib
import itertools
import os
import random
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

SIZE_VARIABLE: Final = "SEGLOG_TEST_SIZE"
SEED_VARIABLE: Final = "SEGLOG_TEST_SEED"
_KERNEL_VARIABLE: Final = "SEGLOG_KERNEL"
_ROOT: Final = Path(__file__).resolve().parents[2]
_GATE_DIVISOR: Final = 4
_FIXED_SEED: Final = "seglog"
"""Where there is no git of our own: the sources of a release are tried with the same draws everywhere."""


class Size(enum.StrEnum):
    """How much the searching tests do."""

    GATE = "gate"
    USUAL = "usual"
    FULL = "full"


def _given_size() -> Size:
    given = os.environ.get(SIZE_VARIABLE) or Size.GATE
    try:
        return Size(given)
    except ValueError:
        raise SystemExit(f"{SIZE_VARIABLE} is {given!r}: expected gate, usual or full") from None


_size = _given_size()


def set_size(size: Size) -> None:
    """Called once, before the test modules are imported."""
    global _size  # noqa: PLW0603 - decided by the command line, before any test is collected
    _size = size


def size() -> Size:
    """Returns the size of this run."""
    return _size


def is_full() -> bool:
    """Returns whether this run has no limit."""
    return _size is Size.FULL


def is_gate() -> bool:
    """Returns whether this run is the gate."""
    return _size is Size.GATE


def scaled(usual: int, full: int) -> int:
    """Returns how many examples, rounds or samples to try, or how wide the steps are through a range.

    The gate does a quarter of the usual work, at least one. A number whose full value is the smaller one is
    the width of a step: the gate's is four times as wide.
    """
    match _size:
        case Size.FULL:
            return full
        case Size.USUAL:
            return usual
        case Size.GATE if usual > full:
            return usual * _GATE_DIVISOR
        case _:
            return max(1, usual // _GATE_DIVISOR)


@functools.cache
def commit_seed() -> str:
    """Returns what all random choices follow from: ``SEGLOG_TEST_SEED``, or the commit's hash, shortened."""
    given = os.environ.get(SEED_VARIABLE)
    if given:
        # Bytes that are no UTF-8 become text that any user of the seed can encode.
        return given.encode(errors="surrogateescape").decode(errors="backslashreplace")
    words = ["git", "rev-parse", "--show-toplevel", "--short=12", "HEAD"]
    try:
        asked = subprocess.run(words, cwd=_ROOT, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return _FIXED_SEED
    top, commit = os.fsdecode(asked.stdout).rstrip("\n").rsplit("\n", 1)
    return commit if Path(top).resolve() == _ROOT else _FIXED_SEED


def seed_number(*names: object) -> int:
    """Returns a number of 64 bits that follows from the seed and from names."""
    text = "/".join(map(str, (commit_seed(), *names)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def chance(*names: object) -> random.Random:
    """Returns a source of random numbers that follows from the seed and from names.

    Args:
        names: What makes the draws of one test other than those of another: its name, its number.
    """
    return random.Random(seed_number(*names))


def start(step: int, *names: object) -> int:
    """Returns where a walk in steps begins, below the width of a step: each commit looks at other places."""
    return seed_number(*names) % step


def strides(first: int, usual: int, full: int, *names: object) -> Iterator[int]:
    """Yields places without end: the first one, and from then on every so many.

    Args:
        first: Where a walk begins.
        usual: How wide the steps are; those of the gate are four times as wide.
        full: How wide they are where there is no limit.
        names: Of this walk, and of no other: where its second place is follows from the seed and from them.
    """
    step = full if is_full() else usual * (_GATE_DIVISOR if is_gate() else 1)
    yield first
    yield from itertools.count(first + 1 + start(step, *names), step)


@contextlib.contextmanager
def repeatable(seed: str) -> Iterator[None]:
    """Adds to an error the line that repeats it, because another commit's seed is another one."""
    try:
        yield
    except BaseException as error:
        test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]
        error.add_note(f"to repeat: {repeating(test, seed)}")
        raise


def repeating(test: str, seed: str) -> str:
    """Returns the line that runs a test as it ran.

    Args:
        test: Its file and name as pytest has them.
        seed: What it drew from.
    """
    kernel = os.environ.get(_KERNEL_VARIABLE)
    variables = ({_KERNEL_VARIABLE: kernel} if kernel else {}) | {SEED_VARIABLE: seed}
    shown = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    return f"{shown} .venv/bin/pytest --size {_size} {shlex.quote(test)}"
