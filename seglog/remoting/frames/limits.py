"""How much of everything one frame may hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of what comes in; beyond them a frame, a header or a body is refused.

    Attributes:
        frame_bytes: What follows the length, as RocketMQ's ``com.rocketmq.remoting.frameMaxLength``.
        header_bytes: Of the header of a request. RocketMQ has no limit; properties of a message take at most
            32 KiB.
        answer_header_bytes: Of the header of an answer, which is as long as what was asked for: that to a
            batch has the ids of all its messages.
        ext_fields: Fields of one header.
        json_values: Values of one JSON body, about: what its commas and brackets come to.
        json_lists: Lists of one JSON body: they are read without a pause in which other threads could run.
        json_keys: Keys of one JSON body beyond 64 of each object, about; for the same reason.
    """

    frame_bytes: int = 16_777_216
    header_bytes: int = 1 << 20
    answer_header_bytes: int = 16_777_212
    ext_fields: int = 1_024
    json_values: int = 1_000_000
    json_lists: int = 200_000
    json_keys: int = 100_000


DEFAULT_LIMITS: Final = Limits()
