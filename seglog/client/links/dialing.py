"""Connects a socket to an address: looks names up, and tries their IP addresses in turn.

Only names are looked up in threads, those of the loop's executor; an IP address needs no look-up.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from seglog.client.links.addresses import parse_address

_Found: TypeAlias = tuple[socket.AddressFamily, socket.SocketKind, int, str, Any]
"""One row of the system's answer; the last item is the address, whose form depends on the family."""


async def dial(
    loop: asyncio.AbstractEventLoop, address: str, timeout_s: float, opened: Callable[[socket.socket], None]
) -> socket.socket:
    """Returns a connected, non-blocking socket.

    Each address of a name gets its share of the remaining time, so that an address without an answer does not
    keep the next one from being tried.

    Args:
        loop: Runs the caller.
        address: The address.
        timeout_s: The longest duration, including the look-up.
        opened: Called with each socket when it is created.

    Raises:
        InvalidArgumentError: ``address`` is not an address.
        OSError: No connection in time; has the reason of the last address tried.
        UnicodeError: The name is not valid.
    """
    host, port = parse_address(address)
    end_s = loop.time() + timeout_s
    async with asyncio.timeout_at(end_s):
        found: Sequence[_Found] = _numeric(host, port) or await loop.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )
    failed: OSError = OSError(f"{host} has no address")
    for number, (family, kind, protocol, _, place) in enumerate(found):
        one = socket.socket(family, kind, protocol)
        opened(one)
        is_connected = False
        try:
            one.setblocking(False)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            share_s = (end_s - loop.time()) / (len(found) - number)
            async with asyncio.timeout(share_s):
                await loop.sock_connect(one, place)
        except OSError as error:
            failed = error
        else:
            is_connected = True
            return one
        finally:
            if not is_connected:
                one.close()
    raise failed


def _numeric(host: str, port: int) -> Sequence[_Found]:
    """Returns the socket addresses of an IP address, without a look-up; nothing for a name."""
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    except (OSError, UnicodeError):
        return ()
