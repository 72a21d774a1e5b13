"""Servers of logs that Python users may have instead: Redis Streams and NATS JetStream, from PyPI's wheels.

Each keeps what it acknowledges as ours does by default: it is with the kernel, and a thread or a timer writes
it to the disk.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from perf.clients.our_server import our_server
from perf.clients.real_broker import free_port
from perf.clients.running import wait_until
from perf.figures.sample import SanityError
from seglog.producer.producer import Producer

Send = Callable[[bytes], None]
"""Sends a body, and returns once the server has acknowledged it."""
_TOPIC: Final = "Sent"
_HOST: Final = "127.0.0.1"


@contextmanager
def seglog_sends(folder: Path) -> Iterator[tuple[Send, int]]:
    """Gives our producer at ``seglog serve``, and the process id of that."""
    with our_server(folder) as server, Producer(server.address, "bench") as producer:
        yield lambda body: void(producer.send(_TOPIC, body)), server.pid


@contextmanager
def redis_sends(folder: Path) -> Iterator[tuple[Send, int]]:
    """Yields XADD of redis-py at a Redis whose append-only file is synced every second."""
    import redis

    port = free_port()
    options = [
        "--bind",
        _HOST,
        "--port",
        str(port),
        "--dir",
        str(folder),
        "--appendonly",
        "yes",
        "--save",
        "",
    ]
    with _running([_script("redis-server"), *options], folder) as process:
        client: Any = redis.Redis(_HOST, port)
        wait_until(lambda: _answers(client.ping), "the start of Redis")
        with client:
            yield lambda body: void(client.xadd(_TOPIC, {"body": body})), process.pid


@contextmanager
def nats_sends(folder: Path) -> Iterator[tuple[Send, int]]:
    """Gives acknowledged publishing of nats-py to a stream of JetStream that is kept in files."""
    import nats

    port = free_port()
    options = ["--addr", _HOST, "--port", str(port), "--jetstream", "--store_dir", str(folder)]
    with _running([_script("nats-server"), *options], folder) as process, asyncio.Runner() as runner:
        client: Any = runner.run(nats.connect(f"nats://{_HOST}:{port}", connect_timeout=60))
        stream = client.jetstream()
        runner.run(stream.add_stream(name=_TOPIC, subjects=[_TOPIC]))
        run = runner.get_loop().run_until_complete
        try:
            yield lambda body: void(run(stream.publish(_TOPIC, body))), process.pid
        finally:
            runner.run(client.close())


def void(_answer: object) -> None:
    """Drops the result of a call, which raises if it was not acknowledged."""


def _script(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def _answers(call: Callable[[], object]) -> bool:
    try:
        call()
    except OSError:
        return False
    return True


@contextmanager
def _running(command: Sequence[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a server until the block ends; its store is deleted with the folder."""
    with ExitStack() as stack:
        out = stack.enter_context((folder / "out").open("wb"))
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=folder)
        stack.callback(process.wait)
        stack.callback(process.kill)
        time.sleep(0.2)
        if process.poll() is not None:
            raise SanityError(f"{command[0]} ended: {(folder / 'out').read_text()[-2000:]}")
        yield process
