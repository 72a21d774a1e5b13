"""The hook that is called before each handler, once for each request, in the calling thread.

It fails closed: a request is also refused if its touches cannot be found, or if the hook fails or returns a
value. The hook is not called again when a held pull wakes, nor after a send has waited for the disk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from seglog.broker.access import Access, Before
from seglog.broker.handlers import replies, send
from seglog.broker.handlers.table import HANDLERS
from seglog.broker.state.state import BrokerState
from seglog.errors import SeglogError
from seglog.logs import logger
from seglog.remoting.codes import ResponseCode
from seglog.remoting.command import Request, Response, refuse
from seglog.remoting.peer import Peer

_log = logger(__name__)
_SENDS: Final = frozenset(handler.code for handler in (*send.HANDLERS, *replies.HANDLERS))


class Gate:
    """Passes requests on to their handlers, or refuses them. Any thread may call it.

    Args:
        before: The hook: returns None, or raises to refuse.
        state: The parts of the broker, in which touches are looked up.
    """

    def __init__(self, before: Before, state: BrokerState) -> None:
        # A hook without strict types may return a value all the same.
        self._before: Callable[[Access], object] = before
        self._state = state

    def refusal(self, request: Request, peer: Peer) -> Response | None:
        """Returns the refusal of a request, None if its handler may answer."""
        handler = HANDLERS.get(request.code)
        if handler is None:
            return None
        try:
            found = self._before(Access(peer, handler.code, handler.touches(self._state, request)))
            if found is None:
                return None
            raise TypeError(f"{self._before!r} returned {found!r}; it raises to refuse, or returns None")
        except SeglogError as error:
            refused = refuse(ResponseCode(error.response_code), str(error))
        except Exception as error:  # noqa: BLE001 - an undecided request is refused, and the loop continues
            _log.error("what is called before a request of code %s failed: %r", request.code, error)
            _log.debug("the same", exc_info=error)
            refused = refuse(
                ResponseCode.SYSTEM_ERROR, f"the broker could not decide on it: {type(error).__name__}"
            )
        return replace(refused, ext=self._state.send_ext) if request.code in _SENDS else refused
