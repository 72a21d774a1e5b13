"""The table of all handlers, by request code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Never, Protocol

from seglog.broker.handlers import (
    clients,
    groups,
    locks,
    offsets,
    pull,
    retention,
    send,
    send_back,
    stats,
    tables,
    topics,
)
from seglog.broker.pulls.pull import HeldPull
from seglog.broker.settings.peer import Peer
from seglog.broker.state.state import BrokerState
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Header, Request, Response, WireNames


class AnyHandler(Protocol):
    """A handler, of any class of header."""

    @property
    def code(self) -> RequestCode:
        """What it answers."""

    @property
    def header_type(self) -> type[Header]:
        """Class of the request's header."""

    @property
    def function(self) -> Callable[[BrokerState, Never], Response | HeldPull]:
        """What answers."""

    @property
    def wire_names(self) -> WireNames | None:
        """Names of the header's fields on the wire, where they are not those of its class."""

    def answer(self, state: BrokerState, request: Request, peer: Peer) -> Response | HeldPull:
        """Returns the answer, or that the request is to be held."""


def _by_code(*families: Iterable[AnyHandler]) -> Sequence[AnyHandler | None]:
    """Returns the handlers at the index of their code: an enum as a key costs as much as a whole lookup."""
    table: list[AnyHandler | None] = [None] * (max(RequestCode) + 1)
    for family in families:
        for handler in family:
            if table[handler.code] is not None:
                raise ValueError(f"two handlers for {handler.code.name}")
            table[handler.code] = handler
    return table


HANDLERS: Final = _by_code(
    send.HANDLERS,
    pull.HANDLERS,
    offsets.HANDLERS,
    locks.HANDLERS,
    topics.HANDLERS,
    groups.HANDLERS,
    send_back.HANDLERS,
    clients.HANDLERS,
    tables.HANDLERS,
    stats.HANDLERS,
    retention.HANDLERS,
)
"""By request code; None where there is no handler."""
