"""``seglog serve``: a store behind a port, for RocketMQ's clients; broker and name server in one process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import click

from seglog.cli.serving.descriptors import check_descriptor, raise_descriptor_limit
from seglog.cli.serving.life import run
from seglog.cli.serving.options import Wanted, check_advertised, check_host
from seglog.cli.serving.telling import logged
from seglog.cli.ui import options
from seglog.server.limits import DEFAULT_LIMITS, ServerLimits
from seglog.server.listening import DEFAULT_PORT, LOOPBACK, Listener
from seglog.storage.writes import Durability

_MAX_PORT: Final = 65_535


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
    "--until-eof",
    is_flag=True,
    help="End as SIGTERM does once stdin ends: for a parent that holds a pipe to it.",
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
    until_eof: bool,
    send_wait_ms: int,
    ready_fd: int | None,
    as_json: bool,
) -> None:
    """Serve STORE to RocketMQ's clients, as broker and name server at one address.

    Makes the store where STORE is missing or empty. SIGTERM, SIGINT, and SIGHUP without nohup, end it in
    order; a second one hangs up at once.
    """
    if ephemeral == (path is not None):
        raise click.UsageError("give either STORE or --ephemeral")
    if virtual_time and not ephemeral:
        raise click.UsageError("--virtual-time goes with --ephemeral: a store that stays is on real time")
    if (virtual_time or until_eof) and sys.stdin is None:
        option = "--until-eof" if until_eof else "--virtual-time"
        raise click.UsageError(
            f"{option} reads standard input, which is closed: give it a pipe, or /dev/null"
        )
    if ready_fd is not None:
        check_descriptor("--ready-fd", ready_fd)
    if advertise is not None:
        check_advertised(advertise)
    check_host(host, insecure=insecure)
    with Listener(host, port, insecure=insecure) as listener:
        if advertise is None and listener.is_everywhere:
            raise click.UsageError(f"--host {host} is no address that clients can use: give --advertise too")
        durability = Durability.SYNC if sync else Durability.ASYNC
        raise_descriptor_limit()
        given = advertise or listener.address
        limits = ServerLimits(send_wait_ms=send_wait_ms)
        with logged():
            run(Wanted(path, listener, given, durability, ready_fd, virtual_time, until_eof, limits, as_json))
