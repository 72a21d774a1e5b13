"""What is asked before each handler, once for each request, in the thread that asks.

It fails closed: a request is refused as well where its touches cannot be found, and where the hook fails or
returns something.
A held pull is not asked about again when it wakes, nor a send that has waited for the disk.
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
    """Lets requests pass to their handlers, or refuses them. Any thread may call it.

    Args:
        before: Returns nothing, or raises to refuse.
        state: What touches are found in.
    """

    def __init__(self, before: Before, state: BrokerState) -> None:
        # A hook that is typed less strictly may return something all the same.
        self._before: Callable[[Access], object] = before
        self._state = state

    def refusal(self, request: Request, peer: Peer) -> Response | None:
        """Returns why a request is refused, None if its handler may answer; no handler refuses by itself."""
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
        except Exception as error:  # noqa: BLE001 - what cannot be decided is refused, and a loop goes on
            _log.error("what is called before a request of code %s failed: %r", request.code, error)
            _log.debug("the same", exc_info=error)
            refused = refuse(
                ResponseCode.SYSTEM_ERROR, f"the broker could not decide on it: {type(error).__name__}"
            )
        return replace(refused, ext=self._state.send_ext) if request.code in _SENDS else refused
