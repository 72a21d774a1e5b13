"""The ports for clients, and advice if a port is in use."""

from __future__ import annotations

import errno
from typing import Final

import click

from seglog.cli.serving.port_holder import port_holder
from seglog.errors import CannotListenError
from seglog.server.listening import VIP_DISTANCE, Listener

_ADVICE: Final = {
    errno.EADDRINUSE: "end what has it (`ss -ltnp` shows all that listens), or take another port;"
    " `--port 0` and `--broker-port 0` take free ones",
    errno.EACCES: "ports below 1024 are for root: take one from 1024 on, such as 9876",
    errno.EADDRNOTAVAIL: "no interface of this machine has that address: `ip address` lists those it has",
}


def listen(host: str, port: int, broker_port: int | None, *, insecure: bool) -> tuple[Listener, ...]:
    """Returns the listeners: one, or with a port for the broker the three that RocketMQ has.

    Args:
        host: Address or name of an interface.
        port: Port of the name server, and of the broker if that has none of its own; 0 for a free one.
        broker_port: Port of the broker, whose VIP channel is two below it; 0 for free ones, None for none.
        insecure: Whether the interface may be another one than loopback.

    Raises:
        CannotListenError: A port is in use; no port is bound then.
        InvalidArgumentError: There is no VIP channel below such a port.
        UsageError: Name server and broker have the same port.
    """
    if broker_port and port and port in (broker_port, broker_port - VIP_DISTANCE):
        raise click.UsageError(
            f"--port {port} is one of the broker's ports: --broker-port {broker_port} takes {broker_port} and"
            f" {broker_port - VIP_DISTANCE}, for the VIP channel; RocketMQ's are 9876 and 10911"
        )
    try:
        if broker_port is None:
            return (Listener(host, port, insecure=insecure),)
        return Listener.usual_three(host, port, broker_port, insecure=insecure)
    except CannotListenError as error:
        cause = error.__cause__
        code = cause.errno if isinstance(cause, OSError) else None
        text = str(error)
        if code == errno.EADDRINUSE:
            text += _who_has(
                port, *(() if broker_port is None else (broker_port, broker_port - VIP_DISTANCE))
            )
        if broker_port is not None and f":{broker_port - VIP_DISTANCE}: " in text:
            text += f" (the VIP channel of a broker is two below --broker-port {broker_port})"
        raise CannotListenError(text, help=_ADVICE.get(code or 0, error.help)) from error


def _who_has(*ports: int) -> str:
    """Returns the text of an error about the process that listens on the first port that is in use."""
    found = (port_holder(port) for port in ports if port > 0)
    who = next((one for one in found if one is not None), None)
    return "" if who is None else f", by {who}"
