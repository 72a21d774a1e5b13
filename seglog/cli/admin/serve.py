"""``seglog serve``: a store behind a port, for RocketMQ's clients; broker and name server in one process.

The port is bound before the store is opened, whose routes name it. A signal ends it in order: clients are
sent away, held pulls end, sends that wait are answered, then the store is closed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from seglog.broker.broker import Broker
from seglog.broker.settings import BrokerConfig
from seglog.cli.ui import options, render
from seglog.errors import InvalidArgumentError
from seglog.server.async_server import AsyncServer
from seglog.server.listening import DEFAULT_PORT, LOOPBACK, Listener, is_loopback
from seglog.storage.format.record import Host
from seglog.storage.writes import Durability

LINGER_MS: Final = 500
"""How long clients are sent away before their connections are closed, so that those who ask then know why."""
_MOST_DESCRIPTORS: Final = 1 << 20
_MAX_PORT: Final = 65_535


@dataclass(frozen=True, slots=True)
class Wanted:
    """How to serve.

    Attributes:
        path: The store; None for one that goes with the process.
        listener: Where clients come in.
        advertised: The address that routes name.
        durability: What sends wait for.
        ready_fd: Where the address is written once clients are served; None for nowhere.
        as_json: Whether what happens is told as JSON.
    """

    path: Path | None
    listener: Listener
    advertised: str
    durability: Durability
    ready_fd: int | None
    as_json: bool


@click.command
@options.optional_store
@click.option("--host", default=LOOPBACK, show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, _MAX_PORT),
    default=DEFAULT_PORT,
    show_default=True,
    help="Port to listen on; 0 takes one that is free.",
)
@click.option("--advertise", metavar="IP:PORT", help="Address that clients are given, where it is another.")
@click.option("--insecure", is_flag=True, help="Listen beyond loopback: there is no authentication yet.")
@click.option("--sync", is_flag=True, help="Acknowledge messages once they are on the disk.")
@click.option("--ephemeral", is_flag=True, help="Serve a new store that goes with the process.")
@click.option(
    "--ready-fd", type=click.IntRange(0), metavar="N", help="Write the address to this descriptor when ready."
)
@options.as_json
def command(
    *,
    path: Path | None,
    host: str,
    port: int,
    advertise: str | None,
    insecure: bool,
    sync: bool,
    ephemeral: bool,
    ready_fd: int | None,
    as_json: bool,
) -> None:
    """Serve STORE to RocketMQ's clients, as broker and name server at one address.

    Makes the store where STORE is missing or empty. SIGTERM and SIGINT end it in order; a second one hangs
    up at once.
    """
    if ephemeral == (path is not None):
        raise click.UsageError("give either STORE or --ephemeral")
    if ready_fd is not None:
        _check_descriptor(ready_fd)
    if advertise is not None:
        _check_address(advertise)
    if not (insecure or is_loopback(host)):
        raise click.UsageError(
            f"--host {host} is not loopback: there is no authentication yet, so each client that reaches the"
            " port may read, send and delete; --insecure permits it"
        )
    with Listener(host, port, insecure=insecure) as listener:
        if advertise is None and listener.is_everywhere:
            raise click.UsageError(f"--host {host} is no address that clients can use: give --advertise too")
        durability = Durability.SYNC if sync else Durability.ASYNC
        logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
        raise_descriptor_limit()
        _run(Wanted(path, listener, advertise or listener.address, durability, ready_fd, as_json))


def raise_descriptor_limit() -> None:
    """Lets the process have as many descriptors as it may: each client and each file takes one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):  # some systems allow less than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _run(wanted: Wanted) -> None:
    with ExitStack() as opened:
        path = wanted.path
        if path is None:
            path = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="seglog-"))) / "store"
        config = BrokerConfig(address=wanted.advertised)
        follow = options.followed()
        broker = opened.enter_context(
            Broker.open(path, config=config, durability=wanted.durability, follow=follow)
        )
        asyncio.run(_serve(broker, wanted, lambda: _tell_ready(broker, wanted)))
    _tell(wanted, {"kind": "stopped"}, "stopped")


async def _serve(broker: Broker, wanted: Wanted, tell_ready: Callable[[], None]) -> None:
    """Serves until a signal comes."""
    stop = asyncio.Event()
    async with AsyncServer(broker, wanted.listener) as server:

        def asked() -> None:
            if stop.is_set():
                server.hang_up()
            stop.set()

        for each in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(each, asked)
        tell_ready()
        await stop.wait()
        count = server.connection_count
        _tell(
            wanted,
            {"kind": "stopping", "connections": count},
            f"stopping: {render.count_text(count, 'connection')}",
        )
        await server.close(LINGER_MS if count else 0)


def _tell_ready(broker: Broker, wanted: Wanted) -> None:
    address = wanted.listener.address
    fields: dict[str, object] = {
        "kind": "ready",
        "address": address,
        "advertised": wanted.advertised,
        "broker": broker.config.broker_name,
        "store": str(broker.path),
    }
    named = "" if wanted.advertised == address else f", clients are given {wanted.advertised}"
    _tell(wanted, fields, f"ready at {address}: {broker.path}, broker and name server{named}")
    if wanted.ready_fd is not None:
        os.write(wanted.ready_fd, f"{address}\n".encode())
        os.close(wanted.ready_fd)


def _tell(wanted: Wanted, fields: dict[str, object], text: str) -> None:
    if wanted.as_json:
        render.emit(fields)
    else:
        render.say(text)
    sys.stdout.flush()


def _check_descriptor(number: int) -> None:
    try:
        os.fstat(number)
    except OSError as error:
        raise click.UsageError(f"--ready-fd {number} is no open descriptor") from error


def _check_address(text: str) -> None:
    try:
        Host.parse(text)
    except InvalidArgumentError as error:
        raise click.UsageError(f"--advertise: {error}") from error
