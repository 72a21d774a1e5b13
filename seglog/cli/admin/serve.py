"""``seglog serve``: a store behind a port, for RocketMQ's clients; broker and name server in one process.

The port is bound before the store is opened, whose routes name it. A signal ends it in order: clients are
sent away, held pulls end, sends that wait are answered, then the store is closed.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import click

from seglog.broker.broker import Broker
from seglog.broker.settings import BrokerConfig
from seglog.cli.admin.time_lines import TimeLines
from seglog.cli.ui import options, render
from seglog.clock import SystemClock, VirtualClock
from seglog.errors import InvalidArgumentError
from seglog.logs import logger
from seglog.server.async_server import AsyncServer
from seglog.server.limits import DEFAULT_LIMITS, ServerLimits
from seglog.server.listening import DEFAULT_PORT, LOOPBACK, Listener, is_loopback
from seglog.storage.format.record import Host
from seglog.storage.writes import Durability

LINGER_MS: Final = 500
"""How long clients are sent away before their connections are closed, so that those who ask then know why."""
_MOST_DESCRIPTORS: Final = 1 << 20
_MAX_PORT: Final = 65_535
_STDIN: Final = 0
_log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Wanted:
    """How to serve.

    Attributes:
        path: The store; None for one that goes with the process.
        listener: Where clients come in.
        advertised: The address that routes name.
        durability: What sends wait for.
        ready_fd: Where the address is written once clients are served; None for nowhere.
        is_virtual: Whether the broker's time is moved by lines on stdin.
        limits: What clients may take.
        as_json: Whether what happens is told as JSON.
    """

    path: Path | None
    listener: Listener
    advertised: str
    durability: Durability
    ready_fd: int | None
    is_virtual: bool
    limits: ServerLimits
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
    "--virtual-time",
    is_flag=True,
    help="With --ephemeral: stamps, delays and retries go by a clock that lines on stdin move: advance 2h.",
)
@click.option(
    "--send-wait-ms",
    type=click.IntRange(1),
    default=DEFAULT_LIMITS.send_wait_ms,
    show_default=True,
    metavar="N",
    help="Answer SYSTEM_BUSY to a send that has waited so long for its turn; RocketMQ's default is 200.",
)
@click.option(
    "--ready-fd", type=click.IntRange(3), metavar="N", help="Write the address to this descriptor when ready."
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
    virtual_time: bool,
    send_wait_ms: int,
    ready_fd: int | None,
    as_json: bool,
) -> None:
    """Serve STORE to RocketMQ's clients, as broker and name server at one address.

    Makes the store where STORE is missing or empty. SIGTERM and SIGINT end it in order; a second one hangs
    up at once.
    """
    if ephemeral == (path is not None):
        raise click.UsageError("give either STORE or --ephemeral")
    if virtual_time and not ephemeral:
        raise click.UsageError("--virtual-time goes with --ephemeral: a store that stays is on real time")
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
        raise_descriptor_limit()
        given = advertise or listener.address
        limits = ServerLimits(send_wait_ms=send_wait_ms)
        with _logged():
            _run(Wanted(path, listener, given, durability, ready_fd, virtual_time, limits, as_json))


@contextmanager
def _logged() -> Iterator[None]:
    """Writes to stderr meanwhile what is logged, what clients set too."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log, level = logger("seglog"), logger("seglog").level
    logging.root.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(level)
        logging.root.removeHandler(handler)


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
        follow = options.followed(path)
        real = SystemClock()
        broker = opened.enter_context(
            Broker.open(
                path,
                config=config,
                durability=wanted.durability,
                follow=follow,
                clock=VirtualClock(real.now_ms()) if wanted.is_virtual else real,
                liveness_clock=real,
            )
        )

        def tell_ready() -> None:
            _tell_ready(broker, wanted)
            if wanted.is_virtual:
                opened.enter_context(TimeLines(broker, _STDIN, partial(_tell, wanted)))

        asyncio.run(_serve(broker, wanted, tell_ready))
    _tell(wanted, {"kind": "stopped"}, "stopped")


async def _serve(broker: Broker, wanted: Wanted, tell_ready: Callable[[], None]) -> None:
    """Serves until a signal comes."""
    stop = asyncio.Event()
    async with AsyncServer(broker, wanted.listener, limits=wanted.limits) as server:

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
        try:
            os.write(wanted.ready_fd, f"{address}\n".encode())
        except OSError as error:  # who waits for it has gone, and clients may be there all the same
            _log.warning("--ready-fd %d: the address is not taken: %s", wanted.ready_fd, error.strerror)
        os.close(wanted.ready_fd)


def _tell(wanted: Wanted, fields: dict[str, object], text: str) -> None:
    if wanted.as_json:
        render.emit(fields)
    else:
        render.say(text)
    sys.stdout.flush()


def _check_descriptor(number: int) -> None:
    try:
        mode = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE
    except OSError as error:
        raise click.UsageError(f"--ready-fd {number} is no open descriptor") from error
    if mode == os.O_RDONLY:
        raise click.UsageError(f"--ready-fd {number} is open for reading only")


def _check_address(text: str) -> None:
    try:
        port = Host.parse(text).port
    except InvalidArgumentError as error:
        raise click.UsageError(
            f"--advertise: {error}; it is the address itself, such as 192.0.2.7:9876, and no name:"
            " message ids hold it"
        ) from error
    if not port:
        raise click.UsageError(f"--advertise {text}: no client reaches port 0; name the port that leads here")
