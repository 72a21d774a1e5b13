"""What is in the messages of a case: for all contestants the same.

Bodies of single messages are all alike, so that making them is not measured; lengths of ragged ones go
through 64 to 2048 in an order that shows no pattern. Keys repeat after 65,536 messages, which no index minds.
RocketMQ's side has the same in ``BenchQueue.java``, other peers' in ``PeerBench.java`` and ``request.rs``.
"""

from __future__ import annotations

import random
from typing import Final

from perf.plan.cases import Case

TAG: Final = "TagA"
KEY_COUNT: Final = 1 << 16
_MIN_RAGGED_BYTES: Final = 64
_MAX_RAGGED_BYTES: Final = 2048
_RAGGED_STEP: Final = 7919


def body_of(case: Case) -> bytes:
    """Returns the body of every single message of a case."""
    return random.Random(1).randbytes(case.body_bytes)


def bodies_of(case: Case, count: int) -> list[bytes]:
    """Returns the bodies of a batch."""
    if not case.is_ragged:
        return [body_of(case)] * count
    span = _MAX_RAGGED_BYTES - _MIN_RAGGED_BYTES + 1
    longest = random.Random(1).randbytes(_MAX_RAGGED_BYTES)
    return [longest[: _MIN_RAGGED_BYTES + number * _RAGGED_STEP % span] for number in range(count)]


def keys() -> list[tuple[str, str]]:
    """Returns KEYS and UNIQ_KEY of usual messages, ``KEY_COUNT`` of them."""
    return [(f"order-{number:08}", f"7F0000010ABC18B4AAC2{number:012X}") for number in range(KEY_COUNT)]
