"""``seglog serve``: serves a store to RocketMQ's clients; broker and name server in one process."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import click

from seglog.broker.settings import RELEASES, BrokerConfig
from seglog.cli.serving.configuring import notes_of, startup_of
from seglog.cli.serving.descriptors import check_descriptor, connections_of, raise_descriptor_limit
from seglog.cli.serving.life import run
from seglog.cli.serving.options import Wanted, advertised, check_host
from seglog.cli.serving.ports import listen
from seglog.cli.serving.telling import logged
from seglog.cli.ui import options
from seglog.server.limits import DEFAULT_LIMITS, ServerLimits
from seglog.server.listening import DEFAULT_PORT, LOOPBACK
from seglog.storage.writes import Durability

_MAX_PORT: Final = 65_535
RETENTION_HOURS: Final = 72
"""``fileReservedTime``."""
_FEW_CONNECTIONS: Final = 1_000


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
@click.option(
    "--broker-port",
    type=click.IntRange(0, _MAX_PORT),
    metavar="N",
    help="Have the broker at this port, its VIP channel at N - 2, and the name server alone at --port; 0"
    " takes free ones. By default all is at --port, or as listenPort of --config says.",
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
    show_default=str(DEFAULT_LIMITS.send_wait_ms),
    metavar="N",
    help="Answer SYSTEM_BUSY to a send that has waited so long for its turn; RocketMQ's default is 200.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="RocketMQ's broker.conf: names, ports, flushDiskType, retention and so on; STORE may be said in it.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="One setting by the name it has in broker.conf; wins over --config.",
)
@click.option(
    "--compatible-with",
    type=click.Choice(tuple(RELEASES)),
    default=BrokerConfig().compatible_with,
    show_default=True,
    help="The release of RocketMQ whose behaviour the broker has, where releases differ.",
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
    broker_port: int | None,
    advertise: str | None,
    insecure: bool,
    sync: bool,
    ephemeral: bool,
    virtual_time: bool,
    until_eof: bool,
    send_wait_ms: int | None,
    config: Path | None,
    settings: tuple[str, ...],
    compatible_with: str,
    ready_fd: int | None,
    as_json: bool,
) -> None:
    """Serve STORE to RocketMQ's clients, as broker and name server at one address.

    Creates the store if STORE is missing or empty. SIGTERM, SIGINT, and SIGHUP without nohup, end it in
    order; a second one hangs up at once.
    """
    startup = startup_of(config, settings)
    if path is None and startup.store is not None and not ephemeral:
        path = Path(startup.store)
    if ephemeral == (path is not None):
        raise click.UsageError("give either STORE or --ephemeral")
    if virtual_time and not ephemeral:
        raise click.UsageError("--virtual-time goes with --ephemeral: a store that stays is on real time")
    if (virtual_time or until_eof) and sys.stdin is None:
        option = "--until-eof" if until_eof else "--virtual-time"
        what = "a pipe that stays open for as long as it is to serve" if until_eof else "a pipe, or /dev/null"
        raise click.UsageError(f"{option} reads standard input, which is closed: give it {what}")
    if ready_fd is not None:
        check_descriptor("--ready-fd", ready_fd)
    if advertise is not None:
        advertise = advertised("--advertise", advertise)
    check_host(host, insecure=insecure)
    with ExitStack() as open_:
        listeners = listen(
            host, port, startup.port if broker_port is None else broker_port, insecure=insecure
        )
        for each in listeners:
            open_.enter_context(each)
        of_broker = listeners[min(1, len(listeners) - 1)]
        if advertise is None and startup.ip is not None:
            advertise = advertised(f"{startup.ip_said}: brokerIP1", f"{startup.ip}:{of_broker.port}")
        if advertise is None and of_broker.is_everywhere:
            raise click.UsageError(f"--host {host} is no address that clients can use: give --advertise too")
        connections = connections_of(raise_descriptor_limit(), DEFAULT_LIMITS.connections)
        notes = notes_of(startup)
        if connections < _FEW_CONNECTIONS:
            notes.append(
                f"at most {connections} connections are accepted: this process may have {2 * connections}"
                " descriptors, and files of the store take the other half; raise that with `ulimit -n`"
            )
        waits = startup.waits if send_wait_ms is None else startup.waits | {"send_wait_ms": send_wait_ms}
        wanted = Wanted(
            path=path,
            listeners=listeners,
            config=BrokerConfig(
                **{"retention_hours": RETENTION_HOURS, **startup.settings},
                address=advertise or of_broker.address,
                compatible_with=compatible_with,
            ),
            lengths=startup.lengths,
            lengths_said=startup.lengths_said,
            notes=notes,
            durability=Durability.SYNC if sync or startup.is_sync else Durability.ASYNC,
            ready_fd=ready_fd,
            is_virtual=virtual_time,
            is_until_eof=until_eof,
            limits=ServerLimits(**waits, connections=connections),
            as_json=as_json,
            log=startup.log,
        )
        with logged():
            run(wanted)
