"""RocketMQ's own name server and broker, a process for each, on any free ports of loopback."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from perf.figures.sample import SanityError
from seglog.client.connect import make_client
from seglog.errors import SeglogError
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, expect_header
from seglog.remoting.headers import GetMaxOffsetHeader, GetRouteInfoHeader, OffsetResponseHeader
from tests.interop.judging import toolchain

QUEUES: Final = 4
_ADDRESS: Final = "127.0.0.1"
_START_LIMIT_S: Final = 120
_LOOK_EVERY_S: Final = 0.1
_NEW_TOPICS: Final = "TBW102"
_PORTS: Final = (20_000, 32_000)
"""Below those that the kernel gives to connections, which come and go."""


@dataclass(frozen=True, slots=True)
class RealBroker:
    """A broker that runs.

    Attributes:
        name_server: Address of its name server.
        address: Its own.
        pid: Its process.
    """

    name_server: str
    address: str
    pid: int

    def stored(self, topic: str) -> int:
        """Returns how many messages a topic has."""
        with make_client(self.name_server) as client:
            count = 0
            for queue_id in range(QUEUES):
                asked = Request(RequestCode.GET_MAX_OFFSET, GetMaxOffsetHeader(topic, queue_id))
                answer = client.link.invoke(asked, to=self.address)
                count += expect_header(answer, OffsetResponseHeader).offset
        return count

    def wait_for_topic(self, topic: str) -> None:
        """Waits until the name server knows where a topic is."""
        with make_client(self.name_server) as client:

            def is_known() -> bool:
                asked = Request(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoHeader(topic))
                with suppress(SeglogError):  # it has just been started
                    return client.link.invoke(asked).code is ResponseCode.SUCCESS
                return False

            _wait(is_known, f"a route of topic {topic}")


@contextmanager
def real_broker(folder: Path) -> Iterator[RealBroker]:
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
        broker = start("broker.BrokerStartup", settings, "1g")
        running = RealBroker(name_server, address, broker.pid)
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
            "-XX:+UseG1GC",
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

        _wait(is_started, f"the start of {name}")
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


def _wait(is_so: Callable[[], bool], what: str) -> None:
    end_s = time.monotonic() + _START_LIMIT_S
    while not is_so():
        if time.monotonic() > end_s:
            raise SanityError(f"{what} did not come within {_START_LIMIT_S} s")
        time.sleep(_LOOK_EVERY_S)
