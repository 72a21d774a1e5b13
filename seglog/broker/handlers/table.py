"""The table of all handlers, by request code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Never, Protocol

from seglog.broker.access import Touch
from seglog.broker.handlers import (
    clients,
    configs,
    groups,
    name_server,
    offsets,
    pull,
    queries,
    rates,
    relays,
    replies,
    retention,
    runtime,
    send,
    send_back,
    shares,
    stats,
    tables,
    topics,
)
from seglog.broker.handlers.handler import Answer
from seglog.broker.handlers.touching import Rule
from seglog.broker.state.state import AnyAppends, BrokerState
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Header, Request
from seglog.remoting.peer import Peer


class AnyHandler(Protocol):
    """A handler with any class of header."""

    @property
    def code(self) -> RequestCode:
        """The request code that it answers."""

    @property
    def header_type(self) -> type[Header]:
        """Class of the request's header."""

    @property
    def function(self) -> Callable[[BrokerState, Never], Answer]:
        """The function that answers."""

    @property
    def rules(self) -> tuple[Rule[Never], ...]:
        """The rules that find the resources of its requests."""

    def touches(self, state: BrokerState, request: Request) -> tuple[Touch, ...]:
        """Returns the resources that a request touches."""

    def answer(self, state: BrokerState, request: Request, peer: Peer, appends: AnyAppends) -> Answer:
        """Returns the answer, a held pull, or a deferred answer."""


def _by_code(*families: Iterable[AnyHandler]) -> Mapping[int, AnyHandler]:
    table: dict[int, AnyHandler] = {}
    for family in families:
        for handler in family:
            if handler.code in table:
                raise ValueError(f"two handlers for {handler.code.name}")
            table[handler.code] = handler
    return table


HANDLERS: Final = _by_code(
    send.HANDLERS,
    pull.HANDLERS,
    offsets.HANDLERS,
    shares.HANDLERS,
    topics.HANDLERS,
    groups.HANDLERS,
    send_back.HANDLERS,
    clients.HANDLERS,
    tables.HANDLERS,
    stats.HANDLERS,
    retention.HANDLERS,
    relays.HANDLERS,
    queries.HANDLERS,
    name_server.HANDLERS,
    configs.HANDLERS,
    replies.HANDLERS,
    runtime.HANDLERS,
    rates.HANDLERS,
)
"""By request code."""
