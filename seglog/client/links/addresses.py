"""Addresses of brokers and name servers, "host:port" as RocketMQ writes them; an IPv6 one has brackets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from seglog.errors import InvalidArgumentError

_MAX_PORT: Final = 65_535


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
