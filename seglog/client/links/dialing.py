"""A socket that is connected to an address: names are looked up, and what they stand for tried in turn.

Names only are looked up in threads, those of the loop's executor; an IP address needs none.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from seglog.client.links.addresses import parse_address

_Found: TypeAlias = tuple[socket.AddressFamily, socket.SocketKind, int, str, Any]
"""One row of the system's answer; the last is the place, of a form for each family."""


async def dial(
    loop: asyncio.AbstractEventLoop, address: str, timeout_s: float, opened: Callable[[socket.socket], None]
) -> socket.socket:
    """Returns a socket that is connected, and does not block.

    Each address of a name gets its share of the time that is left, so that one that does not answer does not
    hide the next one.

    Args:
        loop: Runs the caller.
        address: Where to.
        timeout_s: How long it may take, the look-up included.
        opened: Given each socket as it is made.

    Raises:
        InvalidArgumentError: ``address`` is none.
        OSError: There is no answer in time; the reason of the last address that was tried.
        UnicodeError: The name is none.
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
    """Returns what an IP address stands for, which the system says at once; nothing for a name."""
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    except (OSError, UnicodeError):
        return ()
