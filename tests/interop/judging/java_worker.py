"""RocketMQ's own clients in a process that is told what to do, and says what happens until it is killed.

The other side is ``java/src/main/java/seglog/clients/Worker.java``, which lists the orders.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from tests.interop.judging import toolchain
from tests.support.machine.children import end, start
from tests.support.machine.patience import join_thread, wait_until

_ANSWER_S: Final = 60
_SAID_BYTES: Final = 3_000


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a message is.

    Attributes:
        queue_id: Its queue.
        queue_offset: Its offset there.
        body: What it says.
    """

    queue_id: int
    queue_offset: int
    body: str


class JavaWorker:
    """Clients of one process. One thread gives it orders; use it in a ``with`` statement.

    Args:
        name_server: Where they find the broker.
        home: An empty folder, for logs and offsets of those that broadcast.
        version: Release of the clients.

    Attributes:
        given: What each consumer was given, in its order.
        sent: What was acknowledged to each producer.
        failures: Why sends had to be tried again, and how often.
    """

    def __init__(self, name_server: str, home: Path, version: str = toolchain.DEFAULT_VERSION) -> None:
        home.mkdir()
        self.given: dict[str, list[Place]] = {}
        self.sent: dict[str, list[Place]] = {}
        self.failures: Counter[str] = Counter()
        self._answers: list[dict[str, Any]] = []
        self._stderr = home / "stderr"
        command = toolchain.command_line(
            toolchain.build(version),
            *(*toolchain.QUICK, "-Xmx256m"),
            f"-Duser.home={home}",
            f"-Drocketmq.client.localOffsetStoreDir={home / 'offsets'}",
            f"-Djudge.log={home / 'rocketmq.log'}",
            "-Drocketmq.client.rebalance.waitInterval=1000",
            main_class="seglog.clients.Worker",
        )
        with self._stderr.open("w") as stderr:
            self._process = start(
                [*command, name_server],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                encoding="utf-8",
            )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def join(self, name: str, group: str, topic: str, kind: str) -> None:
        """Has a consumer join a group.

        Args:
            name: Of the consumer.
            group: Its group.
            topic: What it subscribes to.
            kind: CLUSTERING, ORDERLY, BROADCASTING or LITE.
        """
        self.given[name] = []
        self._tell("join", name, group, topic, kind)

    def queues(self, name: str, topic: str) -> list[int]:
        """Returns the queues that a consumer has."""
        found: list[int] = self._tell("look", name, topic)["queues"]
        return found

    def leave(self, name: str) -> None:
        """Has a consumer leave, in order."""
        self._tell("leave", name)

    def send(self, name: str, topic: str, queue_count: int, pause_ms: int = 2) -> None:
        """Begins to send to the queues of a topic in turn; of 0 queues the producer chooses one."""
        self.sent[name] = []
        self._tell("send", name, topic, str(queue_count), str(pause_ms))

    def hush(self, name: str) -> int:
        """Ends a producer once its last message is acknowledged; returns how many were."""
        count: int = self._tell("hush", name)["count"]
        return count

    def kill(self) -> None:
        """Ends it as ``kill -9`` does."""
        self._process.kill()
        join_thread(self._reader, idle_s=30)  # before its pipe is closed
        end(self._process)

    def _tell(self, *words: str) -> dict[str, Any]:
        """Gives an order, and returns the answer."""
        before = len(self._answers)
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()

        def is_answered() -> bool:
            if self._process.poll() is not None:
                raise AssertionError(f"it has ended: {self._stderr.read_text()[-_SAID_BYTES:]}")
            return len(self._answers) > before

        wait_until(is_answered, idle_s=_ANSWER_S)
        answer = self._answers[before]
        assert (answer["did"], answer["name"]) == words[:2]
        return answer

    def _read(self) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            if not text.endswith("\n"):
                return  # a kill has cut it
            line = json.loads(text)
            if "given" in line:
                self.given[line["given"]].append(_place(line))
            elif "sent" in line:
                self.sent[line["sent"]].append(_place(line))
            elif "failed" in line:
                self.failures[line["why"]] += 1
            else:
                self._answers.append(line)


def _place(line: dict[str, Any]) -> Place:
    return Place(line["queue"], line["offset"], line["body"])
