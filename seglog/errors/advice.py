"""Advice for each response code with which a broker refuses a request, if the caller has none of its own.

Source: ``ResponseCode.java``; ``PullMessageProcessor.java`` for when a broker gives the code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_SERVICE_NOT_AVAILABLE: Final = 14
_SUBSCRIPTION_NOT_EXIST: Final = 24

HELP_OF: Final[Mapping[int, str]] = {
    _SUBSCRIPTION_NOT_EXIST: (
        "the broker does not know what the group subscribes to: no heartbeat of its members has come since it"
        " began, or another member has said that the group subscribes to other topics. Have all members of a"
        " group subscribe alike, or give them groups of their own; then try again in a second"
    ),
    _SERVICE_NOT_AVAILABLE: (
        "the broker does not serve such requests now, and says why: open one that was closed again, and make"
        " new clients; with another try again later"
    ),
}
