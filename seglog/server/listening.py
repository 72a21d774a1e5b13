"""The port of a server. It is there before the broker is, whose routes name it.

listener = Listener("127.0.0.1", 0)
broker = Broker.open(path, config=BrokerConfig(address=listener.address))
with Server(broker, listener): ...
"""

from __future__ import annotations

import ipaddress
import os
import socket
from typing import Final

from typing_extensions import override

from seglog.arguments import as_flag, as_int, as_text, refusal
from seglog.closing import Closing
from seglog.errors import CannotListenError, InvalidArgumentError
from seglog.storage.format.record import Host

LOOPBACK: Final = "127.0.0.1"
DEFAULT_PORT: Final = 9_876
"""A name server's, which clients ask first."""
_BACKLOG: Final = 1_024
_MAX_PORT: Final = 65_535


class Listener(Closing):
    """A port that nothing is accepted from before there is a server; that closes it.

    Args:
        host: Address or name of an interface.
        port: 0 for one that is free.
        insecure: Whether the interface may be another one than loopback. There is no authentication yet:
            who reaches the port may read, send and delete.

    Attributes:
        socket: The socket.
        address: Where it listens, ``1.2.3.4:80`` or ``[::1]:80``.
        is_everywhere: Whether it listens on all interfaces, so that its address leads clients nowhere.

    Raises:
        CannotListenError: The port is in use, or the host is none of this machine.
        InvalidArgumentError: The host is not loopback.
    """

    def __init__(self, host: str = LOOPBACK, port: int = DEFAULT_PORT, *, insecure: bool = False) -> None:
        as_int("port", port, 0, _MAX_PORT)
        as_flag("insecure", insecure)
        family, ip = _resolved(as_text("host", host))
        if not (ip.is_loopback or insecure):
            raise refusal("host", host, "loopback", "there is no authentication yet; see insecure")
        try:
            self.socket = socket.create_server((str(ip), port), family=family, backlog=_BACKLOG)
        except OSError as error:
            # Not its own text: Python puts the address into that.
            why = os.strerror(error.errno) if error.errno else str(error)
            raise CannotListenError(f"nothing can listen on {host}:{port}: {why}") from error
        self.socket.setblocking(False)
        bound = self.socket.getsockname()
        self.address = str(Host(ip.packed, bound[1]))
        self.is_everywhere = ip.is_unspecified
        self._is_taken = False

    def take(self) -> None:
        """Takes it for a server.

        Raises:
            InvalidArgumentError: It was closed, or a server has it: clients would come to either of two.
        """
        if self.socket.fileno() < 0:
            raise InvalidArgumentError(f"the listener of {self.address} was closed", help="make a new one")
        if self._is_taken:
            raise InvalidArgumentError(
                f"a server has the listener of {self.address} already", help="make a listener for each server"
            )
        self._is_taken = True

    @override
    def close(self) -> None:
        """Gives the port back."""
        self.socket.close()


def is_loopback(host: str) -> bool:
    """Returns whether only this machine reaches an address, or what a name stands for.

    Raises:
        CannotListenError: Nothing is known of the name.
    """
    return _resolved(host)[1].is_loopback


def _resolved(host: str) -> tuple[socket.AddressFamily, ipaddress.IPv4Address | ipaddress.IPv6Address]:
    try:
        family, *_, where = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no name"
        raise CannotListenError(
            f"nothing can listen on {host!r}: {why}",
            help="name an address of this machine, such as 127.0.0.1, or a name that stands for one",
        ) from error
    return socket.AddressFamily(family), ipaddress.ip_address(str(where[0]))
