"""What the command was told, and checks of it before anything is made."""

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
from seglog.storage.format.record import Host
from seglog.storage.writes import Durability


@dataclass(frozen=True, slots=True)
class Wanted:
    """How to serve.

    Attributes:
        path: The store; None for one that goes with the process.
        listeners: Where clients come in: one, or a name server's, a broker's and its VIP channel's.
        config: Names and settings; its address is the one that routes name.
        lengths: Of the files of a new store, by RocketMQ's names, in bytes.
        lengths_said: Who said them, by the same names.
        notes: What the log says first.
        durability: What sends wait for.
        ready_fd: Where the address is written once clients are served; None for nowhere.
        is_virtual: Whether the broker's time is moved by lines on stdin.
        is_until_eof: Whether the end of stdin ends the process.
        limits: What clients may take.
        as_json: Whether what happens is told as JSON.
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


def check_host(host: str, *, insecure: bool) -> None:
    """Checks that an interface is one that only this machine reaches, or that another one is permitted.

    Raises:
        UsageError: It is not.
    """
    if not (insecure or is_loopback(host)):
        raise click.UsageError(
            f"--host {host} is not loopback: there is no authentication yet, so each client that reaches the"
            " port may read, send and delete; --insecure permits it"
        )


def advertised(option: str, text: str) -> str:
    """Returns an address as clients are given it, with brackets where it is one of IPv6; the option is named.

    Raises:
        UsageError: It is none that they could reach.
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
