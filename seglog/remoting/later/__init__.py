"""Results that come later, and how threads and event loops hear of them.

``deferred`` is the one type of all of them, ``asked`` the table of those that the other end of a connection
gives; an ``inbox`` wakes its thread once for all that came, and
``loop_inbox`` has one for each event loop, and is loaded with asyncio, where that is used.

Called by brokers, clients and servers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog.lazy_exports import lazy_exports
from seglog.remoting.later.asked import MOST_ASKED_BY_CLIENT, AskTable
from seglog.remoting.later.deferred import STEPPED, CancelledError, Deferred, is_loop_here, resolved
from seglog.remoting.later.inbox import Inbox

if TYPE_CHECKING:
    from seglog.remoting.later.loop_inbox import inbox_of, is_running_here, running_loop, until_told

_OF_LOOPS = ("inbox_of", "is_running_here", "running_loop", "until_told")

__all__ = [
    "MOST_ASKED_BY_CLIENT",
    "STEPPED",
    "AskTable",
    "CancelledError",
    "Deferred",
    "Inbox",
    "inbox_of",
    "is_loop_here",
    "is_running_here",
    "resolved",
    "running_loop",
    "until_told",
]

if not TYPE_CHECKING:  # a type checker would take any name for one of ours
    __getattr__ = lazy_exports(__name__, dict.fromkeys(_OF_LOOPS, "loop_inbox"))
