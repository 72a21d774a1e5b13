"""Addresses of brokers and name servers, "host:port" as in RocketMQ; an IPv6 address has brackets."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from seglog.arguments import as_text, shown
from seglog.client.links.client_ids import LOOPBACK
from seglog.errors import InvalidArgumentError

_MAX_PORT: Final = 65_535
_PORT_DIGITS: Final = 5
_MOST_SHOWN: Final = 256
"""Longest address, or list of addresses, that an error shows whole, in characters."""
_NAME: Final = re.compile(r"[^\s/:;,?#@\[\]\x00-\x20]{1,255}")
"""A name, or an IPv4 address; the system decides whether the host exists."""
_FAR: Final = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
"""An address reserved for documentation: the route to it leads out of this machine."""


def parse_address(address: str) -> tuple[str, int]:
    """Returns the host and the port of an address.

    Raises:
        InvalidArgumentError: It is not an address.
    """
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    is_port = port.isascii() and port.isdigit() and len(port) <= _PORT_DIGITS and 0 < int(port) <= _MAX_PORT
    is_host = _NAME.fullmatch(host) or _is_ipv6(host)
    if not (is_port and is_host and host.isprintable()):  # half a surrogate pair cannot even be logged
        given = repr(address) if len(address) <= _MOST_SHOWN else shown(address)
        expected = 'host:port, with ";" between several' if "," in address else "host:port"
        raise InvalidArgumentError(f"{given} is no address: expected {expected}", help=_advice(address))
    return host, int(port)


def _is_ipv6(host: str) -> bool:
    try:
        socket.inet_pton(socket.AF_INET6, host.partition("%")[0])
    except (OSError, ValueError):
        return False
    return True


def _advice(address: str) -> str:
    if "://" in address:
        return 'leave the scheme away, such as "127.0.0.1:9876"'
    if "," in address:
        return 'write ";" between addresses, such as "127.0.0.1:9876;127.0.0.1:9877"'
    return 'give "host:port", such as "127.0.0.1:9876" or "[::1]:9876"'


def name_server_list(name_servers: str | Iterable[str]) -> tuple[str, ...]:
    """Returns the addresses of name servers, each once.

    Args:
        name_servers: Addresses, or a text with ";" between them as for RocketMQ's tools.

    Raises:
        InvalidArgumentError: There is none, or one is not an address.
    """
    given = name_servers.split(";") if isinstance(name_servers, str) else name_servers
    given = [as_text("name_servers", one) for one in given]
    found = tuple(dict.fromkeys(one.strip() for one in given if one.strip()))
    if not found:
        raise InvalidArgumentError(
            "no name server is given", help='name one or more, such as "127.0.0.1:9876;127.0.0.1:9877"'
        )
    for address in found:
        parse_address(address)
    return found


def own_address() -> str:
    """Returns the address of this machine for others; the loopback address if it has none.

    The system is asked for the source address of a packet; nothing is sent.
    """
    for family, far in _FAR:
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((far, 9))
            found: str = probe.getsockname()[0]
            return found
    return LOOPBACK
