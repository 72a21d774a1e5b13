"""The life of the process: opens the store, serves it until the process is asked to end, and closes it.

The port is bound before the opening, because the broker's routes contain it. The stop has this order: clients
are sent away, held pulls end, waiting sends are answered, then the store is closed. A second request to end
shortens these waits.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import click

from seglog.broker.broker import Broker
from seglog.cli.serving.options import Wanted
from seglog.cli.serving.readiness import tell_ready
from seglog.cli.serving.signals import EndSignals, StopAskedError, StoppableFiles, stacks_on_quit
from seglog.cli.serving.telling import Tell, told
from seglog.cli.serving.time_lines import TimeLines
from seglog.cli.serving.undelivered import undelivered
from seglog.cli.ui import options, render
from seglog.clock import SystemClock, VirtualClock
from seglog.errors import InvalidArgumentError
from seglog.logs import logger
from seglog.server.async_server import AsyncServer
from seglog.storage.directory import QUEUE_FILE, SEGMENT
from seglog.storage.files import explained

LINGER_MS: Final = 500
"""How long requests are refused before connections are closed, so that clients learn the reason."""
_STDIN: Final = 0
_OF_SIGNAL: Final = 128
"""Base of a shell's exit code for a process that a signal ended: the signal's number is added."""
_log = logger(__name__)


def run(wanted: Wanted) -> None:
    """Serves as requested; returns when the process was asked to end and the store is closed.

    Raises:
        Exit: The request came while the store was being opened: 128 and the number of the signal.
    """
    with EndSignals() as signals, stacks_on_quit(), told(as_json=wanted.as_json) as tell:
        try:
            _live(wanted, signals, tell)
        except StopAskedError as asked:
            text = f"stopped by {asked.signal.name} before the store was open"
            tell({"kind": "stopped", "signal": asked.signal.name}, text)
            raise click.exceptions.Exit(_OF_SIGNAL + asked.signal) from asked
        tell({"kind": "stopped"}, "stopped")


def _live(wanted: Wanted, signals: EndSignals, tell: Tell) -> None:
    with ExitStack() as opened:
        path = wanted.path
        if path is None:
            path = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="seglog-"))) / "store"
        files = StoppableFiles(path, options.followed(path), signals.check, wanted.log)
        opened.callback(files.close)
        for note in wanted.notes:
            _log.warning("%s", note)
        _log.info("opening %s", path)
        real = SystemClock()
        with _lengths_named(wanted):
            broker = opened.enter_context(
                Broker.open(
                    path,
                    config=wanted.config,
                    durability=wanted.durability,
                    segment_size_bytes=wanted.lengths.get(SEGMENT),
                    queue_file_size_bytes=wanted.lengths.get(QUEUE_FILE),
                    clock=VirtualClock(real.now_ms()) if wanted.is_virtual else real,
                    liveness_clock=real,
                    files=files,
                )
            )
        files.opened()
        for waiting in undelivered(broker.store):
            _log.warning("%s", waiting)
        signals.check()
        with explained():  # the event loop needs descriptors of its own
            runner = opened.enter_context(asyncio.Runner())
        runner.run(_serve(broker, wanted, signals, tell))


@contextmanager
def _lengths_named(wanted: Wanted) -> Iterator[None]:
    """Adds to the error about a length that the store does not have where the length was set."""
    try:
        yield
    except InvalidArgumentError as error:
        for name, argument in ((SEGMENT, "segment_size_bytes"), (QUEUE_FILE, "queue_file_size_bytes")):
            if name in wanted.lengths_said and str(error).startswith(f"{argument}="):
                said = str(error).replace(argument, name, 1)
                raise InvalidArgumentError(
                    f"{wanted.lengths_said[name]}: {said}", help=f"leave {name} out for an existing store"
                ) from error
        raise


async def _serve(broker: Broker, wanted: Wanted, signals: EndSignals, tell: Tell) -> None:
    """Serves until the process is asked to end."""
    stop = asyncio.Event()
    with ExitStack() as opened:
        async with AsyncServer(broker, *wanted.listeners, limits=wanted.limits) as server:

            def asked() -> None:
                if stop.is_set():
                    server.hang_up()
                stop.set()

            opened.enter_context(signals.told(asyncio.get_running_loop(), asked))
            tell_ready(broker, server.addresses, tell, wanted.ready_fd)
            if wanted.is_virtual or wanted.is_until_eof:

                def at_end() -> None:
                    if wanted.is_until_eof:
                        _log.info("standard input has ended, and with it this process (--until-eof)")
                        signals.end()

                opened.enter_context(TimeLines(broker, _STDIN, tell, at_end))
            await stop.wait()
            count = server.connection_count
            tell(
                {"kind": "stopping", "connections": count},
                f"stopping: {render.count_text(count, 'connection')}",
            )
            await server.close(LINGER_MS if count else 0)
