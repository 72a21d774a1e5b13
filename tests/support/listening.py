"""Servers on the loopback interface: a broker of ours, and ones that behave as a test wants it."""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.server.limits import ServerLimits
from seglog.server.listening import Listener
from seglog.server.server import Server as OurServer
from seglog.testing import RoomyFiles
from tests.support.brokers import QUEUE_FILE_BYTES, SEGMENT_BYTES, on_a_roomy_disk
from tests.support.machine.patience import join_thread

LOOPBACK: Final = "127.0.0.1"
_RESET: Final = struct.pack("ii", 1, 0)


class Server:
    """Accepts connections, and has each served by a thread of its own; use it in a ``with`` statement.

    Args:
        serve: Given a connection, and which one it is, from 0 on; when it returns the connection is closed.
        host: Where it listens.
        port: Likewise; 0 for one that is free.

    Attributes:
        address: Where clients find it.
        port: Of that.
        sockets: Connections that it has accepted, in their order.
    """

    def __init__(
        self, serve: Callable[[socket.socket, int], None], host: str = LOOPBACK, port: int = 0
    ) -> None:
        self._serve = serve
        self._listener = socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
        )
        self.port: int = self._listener.getsockname()[1]
        self.address = f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"
        self.sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def hang_up(self) -> None:
        """Ends the connections that there are."""
        for each in self.sockets:
            with suppress(OSError):  # the other end was first
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Accepts no more, ends the connections, and returns when all threads have ended."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        join_thread(self._threads[0], idle_s=30)
        self._listener.close()
        self.hang_up()
        for thread in self._threads:
            join_thread(thread, idle_s=30)

    def _accept(self) -> None:
        with suppress(OSError):  # it was closed
            while True:
                one, _ = self._listener.accept()
                self.sockets.append(one)
                thread = threading.Thread(target=self._run, args=(one, len(self.sockets) - 1))
                self._threads.append(thread)
                thread.start()

    def _run(self, one: socket.socket, number: int) -> None:
        with one, suppress(OSError):  # the client has hung up
            self._serve(one, number)


PATIENT: Final = ServerLimits(send_wait_ms=600_000, pull_wait_ms=600_000, other_wait_ms=600_000)
"""No request is refused for how long it waited: on a busy machine that is long."""


class BrokerServer:
    """A broker of ours on real time behind ports; it is name server as well. Use it in a ``with`` statement.

    Args:
        path: Its store.
        port: Where it listens; 0 for one that is free.
        config: Its settings; the address is that of the port.
        advertised: The address that routes name instead.
        limits: What clients may take; without, no request is refused for how long it waited.
        record_crc: Whether messages get ``__CRC32#``, which RocketMQ does not give them by default.
        broker_port: The broker's own port, which routes name; 0 for one that is free. The VIP channel has one
            too then. None for one port for all.

    Attributes:
        broker: The broker.
        server: What serves it.
        listeners: Where it does.
        address: Where clients find it.
        port: Of that.
    """

    def __init__(
        self,
        path: Path,
        port: int = 0,
        config: BrokerConfig | None = None,
        advertised: str | None = None,
        limits: ServerLimits = PATIENT,
        *,
        record_crc: bool = True,
        broker_port: int | None = None,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self.listeners: tuple[Listener, ...]
        if broker_port is None:
            self.listeners = (Listener(LOOPBACK, port),)
        else:
            self.listeners = Listener.usual_three(LOOPBACK, port, broker_port)
        named = advertised or self.listeners[broker_port is not None].address
        self.address, self.port = self.listeners[0].address, self.listeners[0].port
        base = on_a_roomy_disk(config or BrokerConfig())
        self.broker = Broker.open(
            path,
            config=replace(base, address=named),
            segment_size_bytes=segment_bytes,
            queue_file_size_bytes=QUEUE_FILE_BYTES,
            files=RoomyFiles(path),
            record_crc=record_crc,
        )
        self.server = OurServer(self.broker, *self.listeners, limits=limits)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connections, then the broker."""
        self.server.close()
        self.broker.close()


class CuttingProxy(Server):
    """Passes bytes on, both ways, until a connection has had its share; then it is cut.

    Args:
        to_port: Where it leads, on the loopback device; nothing need be there.
        chance: Chooses shares, and whether a cut is a FIN or a RST.
        mean_bytes: Of a share; each is anything from 1 byte on, and many are much smaller.

    Attributes:
        is_calm: Whether nothing is cut any more.
        cuts: How many connections were.
    """

    def __init__(self, to_port: int, chance: random.Random, mean_bytes: int) -> None:
        self.is_calm = False
        self.cuts = 0
        self._to_port = to_port
        self._chance = chance
        self._mean_bytes = mean_bytes
        super().__init__(self._pass_on)

    def _pass_on(self, one: socket.socket, _number: int) -> None:
        share = _Share(1 + int(self._chance.expovariate(1 / self._mean_bytes)))
        is_reset = self._chance.random() < 0.5
        try:
            there = socket.create_connection((LOOPBACK, self._to_port))
        except OSError:
            return  # the broker is not there now: who has connected is hung up on
        with there:
            back = threading.Thread(target=self._pump, args=(there, one, share))
            back.start()
            self._pump(one, there, share)
            back.join()
            if is_reset and not share.left_bytes:
                with suppress(OSError):
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)

    def _pump(self, source: socket.socket, sink: socket.socket, share: _Share) -> None:
        with suppress(OSError):  # either end is gone
            while data := source.recv(1 << 16):
                if self.is_calm:
                    sink.sendall(data)
                    continue
                passed = share.take(data)
                sink.sendall(passed)
                if len(passed) < len(data):
                    self.cuts += 1
                    break
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class _Share:
    """What one connection may still pass on, both ways together."""

    def __init__(self, size_bytes: int) -> None:
        self.left_bytes = size_bytes
        self._lock = threading.Lock()

    def take(self, data: bytes) -> bytes:
        """Returns as much of some bytes as is left to it."""
        with self._lock:
            passed = data[: self.left_bytes]
            self.left_bytes -= len(passed)
            return passed
