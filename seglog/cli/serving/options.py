"""The arguments of the command, and checks of them before the store is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import click

from seglog.broker.settings import BrokerConfig
from seglog.errors import InvalidArgumentError
from seglog.server.limits import ServerLimits
from seglog.server.listening import Listener, is_loopback
from seglog.storage.directory import LogPaths
from seglog.storage.format.record import Host
from seglog.storage.writes import Durability


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of serving.

    Attributes:
        path: The store; None for a temporary store that is removed at the end.
        listeners: Ports for clients: one, or those of name server, broker and VIP channel.
        config: Names and settings; its address is the address in routes.
        lengths: Lengths of the files of a new store, by RocketMQ's names, in bytes.
        lengths_said: Where each length was set, by the same names.
        notes: The first lines of the log.
        durability: When sends are answered.
        ready_fd: Descriptor to which the address is written once clients are served; None for none.
        is_virtual: Whether lines on stdin move the broker's time.
        is_until_eof: Whether the end of stdin ends the process.
        limits: Limits for clients.
        as_json: Whether events are printed as JSON.
        log: The folders of the log that the configuration states.
    """

    path: Path | None
    listeners: tuple[Listener, ...]
    config: BrokerConfig
    lengths: Mapping[str, int]
    lengths_said: Mapping[str, str]
    notes: Sequence[str]
    durability: Durability
    ready_fd: int | None
    is_virtual: bool
    is_until_eof: bool
    limits: ServerLimits
    as_json: bool
    log: LogPaths | None = None


def check_host(host: str, *, insecure: bool) -> None:
    """Checks that only this machine can reach an interface, or that another interface is permitted.

    Raises:
        UsageError: It is not.
    """
    if not (insecure or is_loopback(host)):
        raise click.UsageError(
            f"--host {host} is not loopback: there is no authentication yet, so each client that reaches the"
            " port may read, send and delete; --insecure permits it"
        )


def advertised(option: str, text: str) -> str:
    """Returns an address in the form for clients, with brackets around an IPv6 address.

    Raises:
        UsageError: Clients cannot reach it; the error names the option.
    """
    try:
        host = Host.parse(text)
    except InvalidArgumentError as error:
        raise click.UsageError(
            f"{option}: {error}; it is the address itself, such as 192.0.2.7:9876, and no name:"
            " message ids hold it"
        ) from error
    address = ip_address(host.address)
    if address.is_unspecified or address.is_multicast:
        raise click.UsageError(
            f"{option} {text}: no client reaches a broker at {address}; name the address of one interface"
        )
    if not host.port:
        raise click.UsageError(f"{option} {text}: no client reaches port 0; name the port that leads here")
    return str(host)
