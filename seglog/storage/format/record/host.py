"""A host field: raw address bytes and a port, 8 bytes with IPv4 and 20 with IPv6."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from functools import lru_cache

from typing_extensions import override

from seglog.arguments import MAX_I32, MIN_I32, as_int, refusal
from seglog.errors import InvalidArgumentError

IPV4_BYTES = 4
IPV6_BYTES = 16
PORT_BYTES = 4
_MAX_PORT = 65535


@dataclass(frozen=True, slots=True)
class Host:
    """An address and a port as records hold them.

    Attributes:
        address: 4 or 16 bytes in network order.
        port: Stored as a signed 32-bit integer.
    """

    address: bytes
    port: int

    def __post_init__(self) -> None:
        """Checks what no record can hold.

        Raises:
            InvalidArgumentError: The address has another length, or the port more than 32 bits.
        """
        if type(self.address) is not bytes or len(self.address) not in (IPV4_BYTES, IPV6_BYTES):
            raise refusal("address", self.address, f"{IPV4_BYTES} or {IPV6_BYTES} bytes")
        object.__setattr__(self, "port", as_int("port", self.port, MIN_I32, MAX_I32))

    @classmethod
    def parse(cls, text: str) -> Host:
        """Returns the host of ``1.2.3.4:80`` or ``[::1]:80``.

        Raises:
            InvalidArgumentError: The text is no address with a port.
        """
        address, colon, port = text.rpartition(":")
        try:
            if not colon:
                raise ValueError("no port")
            if not 0 <= int(port) <= _MAX_PORT:
                raise ValueError(f"port {port} is outside 0..{_MAX_PORT}")
            return cls(ipaddress.ip_address(address.strip("[]")).packed, int(port))
        except ValueError as error:
            raise InvalidArgumentError(f"{text!r} is no host and port: {error}") from error

    @property
    def is_ipv6(self) -> bool:
        """Whether the address has 16 bytes."""
        return len(self.address) == IPV6_BYTES

    @override
    def __str__(self) -> str:
        """``10.1.2.3:40000`` or ``[1050::5]:40000``."""
        address = ipaddress.ip_address(self.address)
        return f"[{address}]:{self.port}" if self.is_ipv6 else f"{address}:{self.port}"

    def java_text(self) -> str:
        """Returns what Java's ``InetSocketAddress.toString`` prints for it, as RocketMQ's tools show it."""
        return _java_text(self.address, self.port)


@lru_cache(maxsize=4096)
def _java_text(address: bytes, port: int) -> str:
    if len(address) == IPV4_BYTES:
        return f"/{'.'.join(map(str, address))}:{port}"
    groups = (f"{high << 8 | low:x}" for high, low in zip(address[::2], address[1::2], strict=True))
    return f"/[{':'.join(groups)}]:{port}"
