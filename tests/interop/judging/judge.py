"""Asks the real Apache RocketMQ store: opens directories with it, writes, holds and measures them.

One JVM answers most questions (a start costs about a second, a question half of one); each question opens and
closes its own store there. RocketMQ opens every directory read-write, and recovers before it takes its lock:
ask about a copy when the directory must stay as it is.

``java/`` holds the other side; ``toolchain`` builds it.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Final, Self

from tests.interop.judging import toolchain
from tests.interop.judging.java_broker import JavaBroker
from tests.interop.judging.questions import (
    DEFAULT_GEOMETRY,
    Dump,
    Geometry,
    JavaMessages,
    Line,
    Probe,
    camel_case,
    java_text,
    options_of,
    question_of,
    target_of,
)
from tests.support.machine.children import start
from tests.support.machine.patience import patience_s

QUESTION_LIMIT_S: Final = 120
"""On an idle machine."""


class JudgeError(Exception):
    """The real store threw where it should have answered; the message holds what it said."""


class HeldStore:
    """A store that a process of its own holds open."""

    def __init__(self, process: subprocess.Popen[str], pid: int) -> None:
        self._process = process
        self.pid = pid

    def kill(self) -> None:
        """Ends the process with SIGKILL: the abort file stays, the lock goes."""
        self._process.kill()
        self._process.wait()


class Judge:
    """The real store of one RocketMQ version. One thread at a time; close() ends its JVM.

    Args:
        version: Of RocketMQ.
        is_bench: Whether it measures: its JVM then has the collector and the compilers of a server.
    """

    def __init__(self, version: str = toolchain.DEFAULT_VERSION, *, is_bench: bool = False) -> None:
        self.version = version
        self._is_bench = is_bench
        self._class_path: str | None = None
        self._process: subprocess.Popen[str] | None = None
        self._scratch = tempfile.TemporaryDirectory(prefix="seglog-judge-")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def build(self) -> None:
        """Makes the judge ready; without network after the first time.

        Raises:
            toolchain.BuildError: It could not be built.
        """
        self._class_path = toolchain.build(self.version)

    def close(self) -> None:
        """Ends the JVM and removes its temporary files."""
        if self._process is not None:
            _end(self._process)
            self._process = None
        self._scratch.cleanup()

    def dump(
        self,
        path: Path,
        geometry: Geometry = DEFAULT_GEOMETRY,
        *,
        probes: Sequence[Probe] = (),
        **config: object,
    ) -> Dump:
        """Returns all that the real store serves from ``path``, after its recovery.

        Args:
            path: The store directory. It is opened read-write and shut down cleanly.
            geometry: Sizes to tell the store.
            probes: What to ask besides; the answers follow in this order.
            config: Further properties of MessageStoreConfig, by their names in broker.conf.
        """
        return Dump(self._ask(question_of("dump", probes) | target_of(path, geometry, config)))

    def append(
        self,
        path: Path,
        messages: Sequence[JavaMessages],
        geometry: Geometry = DEFAULT_GEOMETRY,
        *,
        halt: bool = False,
        **config: object,
    ) -> list[Line]:
        """Lets the real store append, and returns an ``appended`` line for each call.

        Args:
            path: The store directory.
            messages: What to append, in this order.
            geometry: Sizes to tell the store.
            halt: End with Runtime.halt right after the last append: the abort file stays, and records that
                were not yet dispatched are in the log only.
            config: Further properties of MessageStoreConfig.
        """
        return self._write("append", path, messages, geometry, halt=halt, config=config)

    def write(
        self,
        path: Path,
        messages: Sequence[JavaMessages],
        geometry: Geometry = DEFAULT_GEOMETRY,
        *,
        halt: bool = False,
        **config: object,
    ) -> list[Line]:
        """Lets the real store make a new directory; else as :meth:`append`."""
        return self._write("write", path, messages, geometry, halt=halt, config=config)

    def probe(
        self, path: Path, probes: Sequence[Probe], geometry: Geometry = DEFAULT_GEOMETRY, **config: object
    ) -> list[Line]:
        """Returns the real store's answer to each probe: a ``get``, an ``offset`` or a ``query`` line."""
        return self._ask(question_of("probe", probes) | target_of(path, geometry, config))

    def compact(
        self,
        path: Path,
        probes: Sequence[Probe] = (),
        geometry: Geometry = DEFAULT_GEOMETRY,
        *,
        halt: bool = False,
        **config: object,
    ) -> tuple[list[Line], list[Line]]:
        """Lets the real store compact each queue of its compaction topics, as it does by itself in time.

        Args:
            path: The store directory.
            probes: What to ask the running store afterwards.
            geometry: Sizes to tell the store.
            halt: End with Runtime.halt afterwards: the abort file stays.
            config: Further properties of MessageStoreConfig.

        Returns:
            A ``compacted`` line for each queue, and the answers to the probes.
        """
        question = question_of("compact", probes) | {"halt": halt}
        lines = self._ask(question | target_of(path, geometry, config))
        compacted = [line for line in lines if line["kind"] == "compacted"]
        return compacted, lines[len(compacted) :]

    def run_timer(
        self, path: Path, seconds: float, geometry: Geometry = DEFAULT_GEOMETRY, **config: object
    ) -> Line:
        """Lets the real store's timer deliver what is due for some time.

        Args:
            path: The store directory.
            seconds: How long it runs.
            geometry: Sizes to tell the store.
            config: Further properties of MessageStoreConfig.

        Returns:
            The ``timer`` line: ``error`` if the timer refused to load, how far it came in its topic else.
        """
        (answer,) = self.run_timers({path: config}, seconds, geometry)
        return answer

    def run_timers(
        self,
        stores: Mapping[Path, Mapping[str, object]],
        seconds: float,
        geometry: Geometry = DEFAULT_GEOMETRY,
    ) -> list[Line]:
        """Does so for several stores at once.

        Args:
            stores: Their directories, each with its further properties of MessageStoreConfig.
            seconds: How long they run.
            geometry: Sizes to tell all.
        """
        targets = [target_of(path, geometry, config) for path, config in stores.items()]
        return self._ask({"op": "timers", "seconds": seconds, "stores": targets})

    def try_lock(
        self,
        path: Path,
        geometry: Geometry = DEFAULT_GEOMETRY,
        *,
        like_broker: bool = False,
        **config: object,
    ) -> str | None:
        """Loads and starts the real store in ``path``; returns its refusal, or None when it started.

        Args:
            path: The store directory.
            geometry: Sizes to tell the store.
            like_broker: After a refusal go through what the exit hook of the real broker does: it flushes a
                checkpoint and deletes the abort file, although another process holds the store.
            config: Further properties of MessageStoreConfig.
        """
        question = {"op": "trylock", "likeBroker": like_broker} | target_of(path, geometry, config)
        (answer,) = self._ask(question)
        refusal: str | None = answer["error"]
        return refusal

    @contextlib.contextmanager
    def hold(
        self, path: Path, geometry: Geometry = DEFAULT_GEOMETRY, *, limit_s: float = 60
    ) -> Iterator[HeldStore]:
        """Keeps ``path`` open in a JVM of its own until the block ends; then it shuts down cleanly."""
        options = ["hold", str(path), "--seconds", str(limit_s), *options_of(geometry)]
        process = self._start(*options)
        try:
            (ready,) = self._answers(process, {"op": "hold"}, until="ready")
            yield HeldStore(process, ready["pid"])
        finally:
            _end(process)

    @contextlib.contextmanager
    def broker(
        self,
        path: Path,
        geometry: Geometry = DEFAULT_GEOMETRY,
        *,
        settings: dict[str, object] | None = None,
        halt: bool = False,
        name_server: bool = False,
        name_server_port: int = 0,
        **config: object,
    ) -> Iterator[JavaBroker]:
        """Runs the real broker on ``path`` until the block ends; this judge does nothing else meanwhile.

        Args:
            path: The store directory.
            geometry: Sizes to tell the store.
            settings: Properties of BrokerConfig.
            halt: End with Runtime.halt instead of a clean shutdown: the abort file stays, tables are as they
                were last saved.
            name_server: Whether a name server runs beside it.
            name_server_port: Where that listens; 0 for a port that is free.
            config: Further properties of MessageStoreConfig.
        """
        broker = {name: java_text(value) for name, value in (settings or {}).items()}
        question = {"op": "brokerStart", "broker": broker, "nameServer": name_server}
        question["nameServerPort"] = name_server_port
        question |= target_of(path, geometry, config)
        (started,) = self._ask(question)
        try:
            home = Path(self._scratch.name)
            yield JavaBroker(
                started["port"], started["nameServerPort"], home, lambda asked: self._ask(dict(asked))
            )
        finally:
            if self._process is not None:
                self._ask({"op": "brokerHalt" if halt else "brokerStop"})

    def client_id(
        self, instance_name: str | None = None, unit_name: str | None = None, *, broadcasts: bool = False
    ) -> tuple[str, str, int]:
        """Returns the id of a client of RocketMQ with such settings, its address, and its process id."""
        question = {"op": "clientId", "instanceName": instance_name, "unitName": unit_name}
        (answer,) = self._ask(question | {"broadcasts": broadcasts})
        return answer["id"], answer["ip"], answer["pid"]

    def bench(
        self,
        path: Path,
        workload: str,
        config: dict[str, object] | None = None,
        **options: object,
    ) -> Line:
        """Measures the real store; best with a judge made for it, whose JVM stays for the next measurement.

        Args:
            path: An empty or missing directory; for reopen one that fill has left.
            workload: write, sync, async, pull, random, fill or reopen; see ``java/.../Bench.java``.
            config: Further properties of MessageStoreConfig.
            options: What else the bench reads, by its names in ``java/.../Request.java`` in snake case.

        Returns:
            ``n``, ``seconds``, ``cpu_seconds``, ``msgs_per_s``, ``log_bytes``, and of a call ``p50_us``,
            ``p99_us``, ``p999_us`` and ``max_us``.
        """
        question = {"op": "bench", "workload": workload} | camel_case(options)
        (result,) = self._ask(question | target_of(path, DEFAULT_GEOMETRY, config or {}))
        return result

    def _write(
        self,
        op: str,
        path: Path,
        messages: Sequence[JavaMessages],
        geometry: Geometry,
        *,
        halt: bool,
        config: dict[str, object],
    ) -> list[Line]:
        question = {"op": op, "halt": halt, "messages": [camel_case(asdict(each)) for each in messages]}
        return self._ask(question | target_of(path, geometry, config))

    def _ask(self, question: Line) -> list[Line]:
        if self._process is None:
            self._process = self._start("serve")
        for log in self._logs():
            log.write_bytes(b"")  # the JVM appends: what stands there afterwards belongs to this question
        process = self._process
        assert process.stdin is not None
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
        try:
            answers = self._answers(process, question)
        except JudgeError:
            self._process = None
            _end(process)
            raise
        if not self._is_sound:
            self._process = None
            _end(process)
        return answers

    def _answers(self, process: subprocess.Popen[str], question: Line, until: str = "end") -> list[Line]:
        """Reads answers up to the line of kind ``until``, which counts as an answer unless it is ``end``."""
        answers: list[Line] = []
        assert process.stdout is not None
        with _killed_after(process, patience_s(QUESTION_LIMIT_S)):
            for text in process.stdout:
                line: Line = json.loads(text)
                if line["kind"] == "failed":
                    raise JudgeError(f"{question['op']}: {line['error']}\n{self._said()}")
                if line["kind"] == "end":
                    self._is_sound = bool(line["sound"])
                    return answers
                answers.append(line)
                if line["kind"] == until:
                    return answers
        raise JudgeError(f"{question['op']}: the JVM ended without an answer\n{self._said()}")

    def _start(self, *arguments: str) -> subprocess.Popen[str]:
        if self._class_path is None:
            self._class_path = toolchain.build(self.version)
        scratch = Path(self._scratch.name)
        # The wheel of each timer takes 40 MB beside the heap.
        quick = (*toolchain.QUICK, "-Xmx512m", "-XX:MaxDirectMemorySize=1g")
        measured = ("-XX:+UseG1GC", "-Xms1g", "-Xmx2g", "-Djudge.level=ERROR")
        command = toolchain.command_line(
            self._class_path,
            *(measured if self._is_bench else quick),
            f"-Duser.home={scratch}",
            f"-Djava.io.tmpdir={scratch}",
            f"-Djudge.log={scratch / 'rocketmq.log'}",
            "-Drocketmq.client.rebalance.waitInterval=1000",
        )
        with (scratch / "stderr").open("a") as stderr:
            return start(
                [*command, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                encoding="utf-8",
            )

    def _said(self) -> str:
        """Returns what the JVM and RocketMQ said besides answers, since the question was asked."""
        return "\n".join(file.read_text(errors="replace")[-3000:] for file in self._logs() if file.exists())

    def _logs(self) -> list[Path]:
        return [Path(self._scratch.name, name) for name in ("stderr", "rocketmq.log")]


@contextlib.contextmanager
def _killed_after(process: subprocess.Popen[str], limit_s: float) -> Iterator[None]:
    watchdog = threading.Timer(limit_s, process.kill)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()


def _end(process: subprocess.Popen[str]) -> None:
    """Closes the pipes, which makes the JVM finish, and waits until it is gone."""
    pipes: list[IO[str] | None] = [process.stdin, process.stdout]
    with contextlib.suppress(BrokenPipeError):
        if process.stdin is not None:
            process.stdin.close()
    try:
        process.wait(timeout=patience_s(15))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in pipes:
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
