"""Says that clients are served: a line on standard output, and the address to who waits for it."""

from __future__ import annotations

import errno
import os
import select
from collections.abc import Sequence

from seglog.broker.broker import Broker
from seglog.cli.serving.telling import Tell
from seglog.logs import logger

_log = logger(__name__)


def tell_ready(broker: Broker, addresses: Sequence[str], tell: Tell, ready_fd: int | None) -> None:
    """Says that clients are served.

    Args:
        broker: Who answers them.
        addresses: Where they come in; with three, that of the name server, of the broker, of its VIP channel.
        tell: Told of it.
        ready_fd: A descriptor that the address is written to and that is closed then; None for none.
    """
    address, advertised = addresses[0], broker.config.address
    fields: dict[str, object] = {
        "kind": "ready",
        "address": address,
        "addresses": list(addresses),
        "advertised": advertised,
        "broker": broker.config.broker_name,
        "store": str(broker.path),
    }
    named = "" if advertised in addresses else f", clients are given {advertised}"
    if len(addresses) > 1:
        _, own, vip = addresses
        roles = f"name server; broker at {own}, its VIP channel at {vip}"
    else:
        roles = "broker and name server"
    tell(fields, f"ready at {address}: {broker.path}, {roles}{named}")
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
        raise OSError(errno.EAGAIN, "it is full and has no reader")
    os.write(descriptor, data)
