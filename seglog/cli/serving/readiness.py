"""Says that clients are served: a line on standard output, and the address to who waits for it."""

from __future__ import annotations

import errno
import os
import select

from seglog.broker.broker import Broker
from seglog.cli.serving.telling import Tell
from seglog.logs import logger

_log = logger(__name__)


def tell_ready(broker: Broker, address: str, tell: Tell, ready_fd: int | None) -> None:
    """Says that clients are served.

    Args:
        broker: Who answers them.
        address: Where they come in.
        tell: Told of it.
        ready_fd: A descriptor that the address is written to and that is closed then; None for none.
    """
    advertised = broker.config.address
    fields: dict[str, object] = {
        "kind": "ready",
        "address": address,
        "advertised": advertised,
        "broker": broker.config.broker_name,
        "store": str(broker.path),
    }
    named = "" if advertised == address else f", clients are given {advertised}"
    tell(fields, f"ready at {address}: {broker.path}, broker and name server{named}")
    if ready_fd is not None:
        try:
            _write_at_once(ready_fd, f"{address}\n".encode())
        except OSError as error:  # who waits for it has gone, and clients may be there all the same
            _log.warning("--ready-fd %d: the address is not taken: %s", ready_fd, error.strerror)
        os.close(ready_fd)


def _write_at_once(descriptor: int, data: bytes) -> None:
    """Writes a few bytes where that does not wait: clients would wait too."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    if not poll.poll(0):
        raise OSError(errno.EAGAIN, "it is full, and nobody reads it")
    os.write(descriptor, data)
