"""Ports of a server. They are bound before the broker is opened, whose routes name one of them.

listener = Listener("127.0.0.1", 0)
broker = Broker.open(path, config=BrokerConfig(address=listener.address))
with Server(broker, listener): ...

RocketMQ has three: the name server's, the broker's, and two below that the VIP channel, where the broker
answers the same requests. Clients that are set to use it compute its port from the broker's port in routes.

Source: ``MixAll.java brokerVIPChannel``, ``BrokerController.java initializeRemotingServer``.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from contextlib import ExitStack
from typing import Final, Self

from typing_extensions import override

from seglog.arguments import as_flag, as_int, as_text, refusal
from seglog.closing import Closing
from seglog.errors import CannotListenError, InvalidArgumentError
from seglog.storage.format.record import Host

LOOPBACK: Final = "127.0.0.1"
DEFAULT_PORT: Final = 9_876
"""The name server's port, which clients ask first."""
DEFAULT_BROKER_PORT: Final = 10_911
"""The broker's ``listenPort``, which routes name."""
VIP_DISTANCE: Final = 2
"""How far the VIP channel of a broker is below its port."""
_BACKLOG: Final = 1_024
_MAX_PORT: Final = 65_535
_TRIES: Final = 16
"""Most free ports tried for a broker until the port of its VIP channel is free too."""


class Listener(Closing):
    """A bound port, at which a server accepts connections; the server closes it.

    Args:
        host: Address or name of an interface.
        port: The port; 0 for a free one.
        insecure: Whether the interface may be another one than loopback. There is no authentication yet: any
            client that reaches the port may read, send and delete.

    Attributes:
        socket: The socket.
        port: Where it listens.
        address: The same with its host, ``1.2.3.4:80`` or ``[::1]:80``.
        is_everywhere: Whether it listens on all interfaces, so that clients cannot connect to its address.
        accepted_count: The number of connections accepted here.

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
        self.port: int = self.socket.getsockname()[1]
        self.address = str(Host(ip.packed, self.port))
        self.is_everywhere = ip.is_unspecified
        self.accepted_count = 0
        self._is_taken = False

    @override
    def __repr__(self) -> str:
        return f"<Listener at {self.address}>"

    @classmethod
    def usual_three(
        cls,
        host: str = LOOPBACK,
        port: int = DEFAULT_PORT,
        broker_port: int = DEFAULT_BROKER_PORT,
        *,
        insecure: bool = False,
    ) -> tuple[Self, Self, Self]:
        """Listens at the ports of a name server, of a broker, and of its VIP channel: at all or at none.

        Args:
            host: As for one.
            port: The name server's; 0 for one that is free.
            broker_port: The broker's, 3 or more, or 0 for one that is free and has a free one two below it.
            insecure: As for one.

        Returns:
            The listeners in this order; the broker's address is the one that routes are to name.

        Raises:
            CannotListenError: One of the ports is in use, or the host is none of this machine.
            InvalidArgumentError: The host is not loopback, or a port is none.
        """
        as_int("broker_port", broker_port, 0, _MAX_PORT)
        if 0 < broker_port <= VIP_DISTANCE:
            why = f"the port of the VIP channel is {VIP_DISTANCE} less"
            raise refusal("broker_port", broker_port, f"0, or {VIP_DISTANCE + 1} or more", why)
        with ExitStack() as until_all_are:
            name_server = cls(host, port, insecure=insecure)
            until_all_are.enter_context(name_server)
            broker, vip = cls._with_vip(host, broker_port, insecure=insecure)
            until_all_are.pop_all()
            return name_server, broker, vip

    @classmethod
    def _with_vip(cls, host: str, port: int, *, insecure: bool) -> tuple[Self, Self]:
        tried: list[Self] = []  # each stays until the end, so that the next free port is another one
        try:
            while True:
                broker = cls(host, port, insecure=insecure)
                try:
                    return broker, cls(host, broker.port - VIP_DISTANCE, insecure=insecure)
                except BaseException as error:
                    tried.append(broker)
                    if port or len(tried) == _TRIES or not isinstance(error, CannotListenError):
                        raise
        finally:
            for each in tried:
                each.close()

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

    def give_back(self) -> None:
        """Lets another server have it: the one that has taken it was not started."""
        self._is_taken = False

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
