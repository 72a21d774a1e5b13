"""One frame as values, with its header's fields still text.

Source: ``RemotingCommand.java``.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final, NamedTuple

RESPONSE_FLAG: Final = 1
ONEWAY_FLAG: Final = 2
"""Bits of ``flag``."""


class Serialization(enum.IntEnum):
    """Form of a header, in the high byte of its length. Each frame says its own, answers too."""

    JSON = 0
    ROCKETMQ = 1


class Frame(NamedTuple):
    """A request or an answer; a tuple, for each message costs two of them.

    Attributes:
        code: A request code; or a response code, if :attr:`is_response`.
        language: Name of RocketMQ's ``LanguageCode``.
        version: Ordinal of RocketMQ's ``MQVersion``.
        opaque: Number of the request on its connection; the answer has the same.
        flag: Bits ``RESPONSE_FLAG`` and ``ONEWAY_FLAG``.
        remark: Explanation of an answer.
        ext: Fields of the header, in the order in which they came; None where there are none at all.
        body: Not copied where the frame came in one piece.
        serialization: Form of the header.
    """

    code: int
    language: str
    version: int
    opaque: int
    flag: int = 0
    remark: str | None = None
    ext: Mapping[str, str] | None = None
    body: bytes | memoryview = b""
    serialization: Serialization = Serialization.JSON

    @property
    def is_response(self) -> bool:
        """Whether it answers a request of the side that reads it."""
        return bool(self.flag & RESPONSE_FLAG)

    @property
    def is_oneway(self) -> bool:
        """Whether it is a request that is never answered, not even with an error."""
        return bool(self.flag & ONEWAY_FLAG)
