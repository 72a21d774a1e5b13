"""Official clients at work at a broker, in a process of their own: what came of each scenario.

The scenarios are in ``java/src/main/java/seglog/clients``, ``go`` and ``cpp``; a line of JSON that they print
is of one of them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from seglog.broker.settings.config import BrokerConfig
from seglog.client.connect import make_client
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request
from tests.interop.judging import toolchain
from tests.interop.judging.judge import Judge
from tests.interop.judging.places import BROKER_NAME, GEOMETRY
from tests.support.listening import BrokerServer
from tests.support.machine.children import end, start
from tests.support.machine.patience import LateError, patience_s

Outcome = dict[str, Any]

_ROOT: Final = Path(__file__).parents[3]
_LIMIT_S: Final = 60
"""How long a scenario waits for what is to come."""
_SETTINGS: Final = {
    "brokerName": BROKER_NAME,
    # It has several threads for sends, which pass each other, and refuses what waits 200 ms for one of them.
    "sendMessageThreadPoolNums": 1,
    "waitTimeMillsInSendQueue": 60_000,
}
_PLAIN: Final = (
    (re.compile(r"/?127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"cost \[\d+]ms"), "cost [TIME]"),
    (re.compile(r"\s*(See|For more information).*https://\S*.*", re.DOTALL), ""),
)
"""What of the words of an error differs between two processes, and what stands for it."""
_LATE: Final = "it did not come to "
"""What a client says that waited in vain."""


@dataclass(frozen=True, slots=True)
class Both:
    """What came of the scenarios.

    Attributes:
        ours: At our server.
        theirs: At the real broker.
    """

    ours: dict[str, Outcome]
    theirs: dict[str, Outcome]

    def check_done(self, scenarios: Sequence[str]) -> None:
        """Holds that each scenario was done at both, and no other one."""
        assert sorted(self.ours) == sorted(self.theirs) == sorted(scenarios)

    def check_alike(self, scenario: str, other_words: Sequence[str] = ()) -> None:
        """Holds that clients came to the same in a scenario.

        Args:
            scenario: Which one.
            other_words: Errors in its outcome that differ in their words, and in these alone.
        """
        ours, theirs = self.ours[scenario], self.theirs[scenario]
        for side in (theirs, ours):
            check_no_failure(side)
        for name in other_words:
            words = [side["outcome"][name].pop("words") for side in (ours, theirs)]
            assert words[0] != words[1], f"{name} of {scenario} does not differ in its words"
        assert leaves(ours["outcome"]) == leaves(theirs["outcome"])


MakeCommand = Callable[[str, str, Path], list[str]]
"""Makes the command of clients, of the name server, the broker and the folder for what they write."""


def run_at_both(
    folder: Path,
    release: str,
    command: MakeCommand,
    *,
    with_conditions: bool = False,
    delay_levels: str | None = None,
) -> Both:
    """Has clients do all scenarios at our broker and at the real one, at the same time.

    Args:
        folder: An empty one.
        release: Of the real broker.
        command: What runs the clients.
        with_conditions: Whether the brokers filter by SQL92 from the beginning.
        delay_levels: Of both brokers; their own where none are given.
    """
    levels: dict[str, Any] = {} if delay_levels is None else {"messageDelayLevel": delay_levels}
    config = BrokerConfig() if delay_levels is None else BrokerConfig(delay_levels=delay_levels)
    with ExitStack() as opened:
        judge = opened.enter_context(Judge(release))
        judge.build()
        real = opened.enter_context(
            judge.broker(
                folder / "theirs",
                GEOMETRY,
                settings=dict(_SETTINGS),
                name_server=True,
                timerWheelEnable=False,
                **levels,
            )
        )
        serving = opened.enter_context(BrokerServer(folder / "ours", config=config))
        runs = []
        for name, name_server, broker in (
            ("of ours", serving.address, serving.address),
            ("of theirs", f"127.0.0.1:{real.name_server_port}", f"127.0.0.1:{real.port}"),
        ):
            if with_conditions:
                _allow_conditions(name_server, broker)
            home = folder / name
            home.mkdir()
            runs.append(ClientRun(command(name_server, broker, home), home))
            opened.callback(runs[-1].close)
        return Both(*(run.outcomes() for run in runs))


def java_clients(class_path: str, *, vip: bool = False) -> MakeCommand:
    """Returns what makes the command of clients in Java.

    Args:
        class_path: Theirs.
        vip: Whether they use the VIP channel of the broker, two below the port that routes name.
    """

    def command(name_server: str, broker: str, home: Path) -> list[str]:
        program = toolchain.command_line(
            class_path,
            *(*toolchain.QUICK, "-Xmx512m"),
            f"-Duser.home={home}",
            f"-Djudge.log={home / 'rocketmq.log'}",
            f"-Dclients.limit.ms={int(1_000 * patience_s(_LIMIT_S))}",
            f"-Dclients.vip={str(vip).lower()}",
            "-Drocketmq.client.rebalance.waitInterval=1000",
            main_class="seglog.clients.Runs",
        )
        return [*program, name_server, broker]

    return command


def go_clients(program: Path) -> MakeCommand:
    """Returns what makes the command of clients in Go."""
    limit_s = str(int(patience_s(_LIMIT_S)))  # the same for both: requests say it
    return lambda name_server, broker, _home: [str(program), name_server, broker, limit_s]


def cpp_clients(chosen: Sequence[str]) -> MakeCommand:
    """Returns what makes the command of clients in C++, which do the scenarios that are named."""
    limit_s = str(int(patience_s(_LIMIT_S)))
    program = [sys.executable, "-m", "tests.interop.cpp.runs"]
    return lambda name_server, broker, _home: [*program, name_server, broker, limit_s, *chosen]


def _allow_conditions(name_server: str, broker: str) -> None:
    with make_client(name_server) as client:
        changed = Request(RequestCode.UPDATE_BROKER_CONFIG, body=b"enablePropertyFilter=true")
        assert client.link.invoke(changed, to=broker).code is ResponseCode.SUCCESS


class ClientRun:
    """A process of clients that does all scenarios.

    Args:
        command: What runs it.
        home: An empty folder, for their logs and offsets.
    """

    def __init__(self, command: list[str], home: Path) -> None:
        self._complaints = home / "stderr"
        with self._complaints.open("w") as stderr:
            self._process = start(
                command,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                encoding="utf-8",
                cwd=_ROOT,
                env=os.environ | {"HOME": str(home), "ROCKETMQ_GO_LOG_LEVEL": "error"},
            )

    def outcomes(self) -> dict[str, Outcome]:
        """Waits until all are done, and returns what came of each: ``outcome`` or ``failure``."""
        said, _ = self._process.communicate(timeout=10 * patience_s(_LIMIT_S))
        assert self._process.returncode == 0, self._complaints.read_text()[-3000:]
        lines = [json.loads(line) for line in said.splitlines()]
        return {line["scenario"]: plain(line) for line in lines}

    def close(self) -> None:
        """Ends it however it goes."""
        end(self._process)


def check_no_failure(done: Outcome) -> None:
    """Holds that a scenario came to its end.

    Raises:
        LateError: It waited in vain; the clients in all languages say so in the same words.
        AssertionError: It failed otherwise.
    """
    if "failure" in done:
        raise (LateError if _LATE in done["failure"] else AssertionError)(done["failure"])


def plain(value: Any) -> Any:
    """Returns an outcome without what differs between two processes."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, str):
        for pattern, stands in _PLAIN:
            value = pattern.sub(stands, value)
    return value


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """Returns an outcome as what is at each place in it, so that a difference is shown with its place."""
    if isinstance(value, dict):
        named = value.items()
    elif isinstance(value, list):
        named = dict(enumerate(value)).items()
    else:
        return {path: value}
    found: dict[str, Any] = {path: len(value)}
    for name, each in named:
        found |= leaves(each, f"{path}/{name}")
    return found
