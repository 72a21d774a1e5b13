"""Addresses of brokers and name servers, "host:port" as RocketMQ writes them; an IPv6 one has brackets."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from seglog.client.links.client_ids import LOOPBACK
from seglog.errors import InvalidArgumentError

_MAX_PORT: Final = 65_535
_FAR: Final = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
"""Addresses kept free for documents: the way there is the way out of this machine."""


def parse_address(address: str) -> tuple[str, int]:
    """Returns the host and the port of an address.

    Raises:
        InvalidArgumentError: It is none.
    """
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) <= _MAX_PORT:
        raise InvalidArgumentError(
            f"{address!r} is no address", help='give "host:port", such as "127.0.0.1:9876" or "[::1]:9876"'
        )
    return host, int(port)


def name_server_list(name_servers: str | Iterable[str]) -> tuple[str, ...]:
    """Returns the addresses of name servers, each once.

    Args:
        name_servers: Addresses, or a text with ";" between them as RocketMQ's tools take it.

    Raises:
        InvalidArgumentError: There is none, or one is no address.
    """
    given = name_servers.split(";") if isinstance(name_servers, str) else name_servers
    found = tuple(dict.fromkeys(one.strip() for one in given if one.strip()))
    if not found:
        raise InvalidArgumentError(
            "no name server is given", help='name one or more, such as "127.0.0.1:9876;127.0.0.1:9877"'
        )
    for address in found:
        parse_address(address)
    return found


def own_address() -> str:
    """Returns the address that this machine has for others; the loopback device's where it has none.

    The system is asked which one it would send from; nothing is sent.
    """
    for family, far in _FAR:
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((far, 9))
            found: str = probe.getsockname()[0]
            return found
    return LOOPBACK
