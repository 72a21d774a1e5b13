"""A Spark cluster on the loopback interface: a master and workers, each a process group of its own."""

from __future__ import annotations

import os
import signal
import socket
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import pyspark

import seglog
from tests.support.machine.children import Process, child
from tests.support.machine.java_classes import quick_java
from tests.support.machine.patience import wait_until

_LOOPBACK: Final = "127.0.0.1"
_DEPLOY: Final = "org.apache.spark.deploy"
_START_LIMIT_S: Final = 60.0
_STEP_S: Final = 0.1
_PARENT: Final = 1
_SESSION: Final = 3
"""Of the fields of ``/proc/PID/stat`` behind the name."""
_JAVA: Final = ("-Xmx192m", "-XX:+UseSerialGC")


class Cluster:
    """A master and its workers.

    Attributes:
        address: What a session takes as its master.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[Process] = []
        self._opened = ExitStack()
        with socket.socket() as free:
            free.bind((_LOOPBACK, 0))
            self._port = free.getsockname()[1]
        self.address = f"spark://{_LOOPBACK}:{self._port}"

    def start(self, workers: int) -> None:
        """Starts all of it, and returns once the master listens."""
        self._start("master.Master", "--port", str(self._port), "--webui-port", "0")
        wait_until(lambda: _listens(self._port), "the master", idle_s=_START_LIMIT_S, look_s=_STEP_S)
        for number in range(workers):
            folder = self._folder / f"worker-{number}"
            self._start(
                "worker.Worker",
                *("--cores", "1", "--memory", "1g", "--webui-port", "0"),
                *("--work-dir", str(folder), self.address),
            )

    def kill_worker(self, number: int) -> None:
        """Kills a worker and its executors, all at once."""
        _kill(self._processes[1 + number])

    def python_workers(self) -> list[int]:
        """Returns the Python processes of executors that run tasks: they are forks of one that runs none."""
        sessions = {process.pid for process in self._processes[1:]}
        found: dict[int, int] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):  # it ended meanwhile
                    fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                    is_python = b"pyspark.daemon" in (entry / "cmdline").read_bytes()
                    if is_python and int(fields[_SESSION]) in sessions:
                        found[int(entry.name)] = int(fields[_PARENT])
        return [pid for pid, parent in found.items() if parent in found]

    def stop(self) -> None:
        """Stops all that was started."""
        for process in self._processes:
            _kill(process)
        self._opened.close()

    def _start(self, name: str, *arguments: str) -> None:
        home = Path(pyspark.__file__).parent
        # Without it a worker looks for a source tree to learn which Scala it is of.
        scala = next((home / "jars").glob("spark-core_*.jar")).name.split("_")[1].split("-")[0]
        environment = os.environ | {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": _LOOPBACK,
            "SPARK_SCALA_VERSION": scala,
        }
        with (self._folder / f"{name}-{len(self._processes)}.log").open("wb") as log:
            # As Spark has it for sessions, for whose jars in this order the archive of classes is.
            logger = next((home / "jars").glob("slf4j-api-*.jar"))
            command = ["java", *_JAVA, *quick_java().split(), "-cp", f"{home}/conf:{logger}:{home}/jars/*"]
            command += [f"{_DEPLOY}.{name}", "--host", _LOOPBACK]
            begun = child(
                [*command, *arguments],
                stdout=log,
                stderr=log,
                env=environment,
                cwd=self._folder,
                start_new_session=True,
            )
            self._processes.append(self._opened.enter_context(begun))


@contextmanager
def running_cluster(folder: Path, workers: int) -> Iterator[Cluster]:
    """Runs a cluster for as long as the block lasts."""
    cluster = Cluster(folder)
    try:
        cluster.start(workers)
        yield cluster
    finally:
        cluster.stop()


def zip_package(target: Path) -> Path:
    """Writes the package as ``addPyFile`` takes it: Python and data, nothing compiled."""
    root = Path(seglog.__path__[0])
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(root.rglob("*")):
            is_data = path.suffix in (".py", ".xz") or path.name == "py.typed"
            if path.is_file() and is_data and "__pycache__" not in path.parts:
                archive.write(path, Path("seglog") / path.relative_to(root))
    return target


def _kill(process: Process) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((_LOOPBACK, port)) == 0
