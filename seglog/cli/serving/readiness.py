"""Reports that clients are served: by a line on standard output, and the address on a descriptor."""

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
    """Reports that clients are served.

    Args:
        broker: The broker that serves them.
        addresses: Addresses for clients; if there are three, of the name server, the broker and its VIP
            channel.
        tell: Called with the event.
        ready_fd: A descriptor to which the address is written and which is closed then; None for none.
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
        except OSError as error:  # the waiting process is gone; clients can be served nevertheless
            _log.warning("--ready-fd %d: the address is not taken: %s", ready_fd, error.strerror)
        os.close(ready_fd)


def _write_at_once(descriptor: int, data: bytes) -> None:
    """Writes a few bytes if that does not block: clients would wait too."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    if not poll.poll(0):
        raise OSError(errno.EAGAIN, "it is full and has no reader")
    os.write(descriptor, data)
