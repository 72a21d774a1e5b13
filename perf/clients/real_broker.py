"""RocketMQ's own name server and broker, a process for each, on any free ports of loopback."""

from __future__ import annotations

import os
import random
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from perf.clients.running import RunningBroker, wait_until
from perf.figures.sample import SanityError
from tests.interop.judging import toolchain

_HEAP: Final = "1g"
_GC: Final = "-XX:+UseG1GC"
BROKER_OPTIONS: Final = f"{_GC} -Xms{_HEAP} -Xmx{_HEAP}"
"""Of the JVM of the broker."""
_ADDRESS: Final = "127.0.0.1"
_NEW_TOPICS: Final = "TBW102"
_PORTS: Final = (20_000, 32_000)
"""Below the ports that the kernel gives to outgoing connections."""


@contextmanager
def real_broker(folder: Path) -> Iterator[RunningBroker]:
    """Runs a broker and its name server until the block ends.

    Args:
        folder: Empty; store, settings and logs are put there.

    Raises:
        SanityError: They do not start.
        BuildError: RocketMQ could not be resolved.
    """
    name_server_port, broker_port = free_port(), free_port()
    name_server, address = f"{_ADDRESS}:{name_server_port}", f"{_ADDRESS}:{broker_port}"
    store = folder / "store"
    settings = {
        "bindAddress": _ADDRESS,
        "brokerIP1": _ADDRESS,
        "brokerIP2": _ADDRESS,
        "listenPort": broker_port,
        "haListenPort": broker_port + 1,
        "namesrvAddr": name_server,
        "storePathRootDir": store,
        "storePathCommitLog": store / "commitlog",
        "timerWheelEnable": "false",
        # It refuses what waits 200 ms for a thread, which on a busy machine many sends at a time do.
        "waitTimeMillsInSendQueue": 60_000,
        "diskMaxUsedSpaceRatio": 95,
    }
    with ExitStack() as stack:
        start = Starting(folder, stack)
        start("namesrv.NamesrvStartup", {"bindAddress": _ADDRESS, "listenPort": name_server_port}, "256m")
        broker = start("broker.BrokerStartup", settings, _HEAP)
        running = RunningBroker(name_server, address, broker.pid)
        running.wait_for_topic(_NEW_TOPICS)
        yield running


class Starting:
    """Starts RocketMQ's programs, and ends them with the stack.

    Args:
        folder: For their settings and logs.
        stack: Ends them.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._class_path = toolchain.build()

    def __call__(self, program: str, settings: dict[str, object], heap: str) -> subprocess.Popen[bytes]:
        """Starts one, and waits until it says that it has.

        Raises:
            SanityError: It does not.
        """
        folder, name = self._folder, program.rpartition(".")[2]
        file = folder / f"{name}.conf"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
        command = toolchain.command_line(
            self._class_path,
            _GC,
            f"-Xms{heap}",
            f"-Xmx{heap}",
            f"-Duser.home={folder}",
            f"-Djudge.log={folder / name}.log",
            "-Djudge.level=WARN",
            main_class=f"org.apache.rocketmq.{program}",
        )
        said = folder / f"{name}.out"
        with said.open("wb") as out:
            process = subprocess.Popen(
                [*command, "-c", str(file)],
                stdout=out,
                stderr=subprocess.STDOUT,
                env=os.environ | {"ROCKETMQ_HOME": str(folder)},
            )
        self._stack.callback(_end, process)

        def is_started() -> bool:
            text = said.read_text(errors="replace")
            if process.poll() is not None:
                raise SanityError(f"{name} of RocketMQ ended: {text[-2000:]}")
            return "boot success" in text

        wait_until(is_started, f"the start of {name}")
        return process


def free_port() -> int:
    """Returns a port that nothing listens on, nor on its neighbours: a broker takes three."""
    while True:
        port = random.randrange(*_PORTS)
        with ExitStack() as stack, suppress(OSError):
            for each in (port - 2, port, port + 1):
                stack.enter_context(socket.socket()).bind((_ADDRESS, each))
            return port


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()  # its store goes with its folder
    process.wait()
