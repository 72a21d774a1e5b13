"""A cluster of two workers does what one process does, also when one of them is killed on the way.

The package reaches the executors as a zip, out of which no compiled kernel can be loaded.

The gate has the parts that need no cluster: the package in a zip, and in `compact/test_done_again.py` pieces
of work that a killed task had done before.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import uuid
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from typing_extensions import override

from seglog import MessageStore
from seglog.clock import VirtualClock
from seglog.doctor.check.check import check_store
from seglog.spark.compact.compact import Compaction
from seglog.spark.compact.job import SparkRunner
from seglog.spark.compact.policy import Policy
from seglog.spark.compact.swap import new_store
from seglog.storage.files.files import RealFiles
from tests.spark.archive.stores import content, put
from tests.support.local_runner import LocalRunner
from tests.support.machine.children import child
from tests.support.machine.java_classes import quick_java
from tests.support.machine.patience import join_thread, looks, patience_s, wait_for_end
from tests.support.machine.spark_cluster import running_cluster, zip_package
from tests.support.machine.spark_here import need_spark
from tests.support.material.compactions import STEP_MS, assert_survived, fill_random, survivors
from tests.support.material.stores import served
from tests.support.narrow import not_none

POLICIES = {
    "Prices": Policy(compact=True, delete_retention_ms=50 * STEP_MS),
    "Events": Policy(compact=True, retention_bytes=15_000),
}
KILLS = 3
"""Of each step: a process that is killed must start again, and a task may fail 20 times."""
CONF = {
    "spark.executorEnv.PYTHONPATH": "",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    "spark.cores.max": "2",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": f"-XX:+UseSerialGC {quick_java()}",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.speculation": "true",
    "spark.task.maxFailures": "20",
}
DRIVER = """
import importlib.resources
import json
import sys
from pathlib import Path

from seglog.clock import VirtualClock
from seglog.spark.audit.stores import audit_store
from seglog.spark.session import local_session
from tests.spark.test_cluster import CONF, job, killed_once

address, package, root, now_ms = sys.argv[1:]
session = local_session("seglog cluster", address, CONF)
session.sparkContext.addPyFile(package)


def where(_number):
    import seglog
    from seglog.storage.kernels import KERNELS

    data = importlib.resources.files("seglog") / "data" / "roll-store.tar.xz"
    return seglog.__file__, KERNELS, len(data.read_bytes()) > 1000


seen = session.sparkContext.parallelize(range(2), 2).map(where).collect()
report = audit_store(Path(root), spark=session)
print(json.dumps([seen, report.records, [str(finding) for finding in report.findings]]), flush=True)
done = job(Path(root), int(now_ms), killed_once(session, Path(root).parent)).apply()
print(json.dumps([done.is_done, done.plan.dropped]), flush=True)
session.stop()
"""


MOVING_DRIVER = """
import sys
from pathlib import Path

from seglog.spark.archive.archive import archive_store
from seglog.spark.archive.restore import restore_store
from seglog.spark.session import local_session
from tests.spark.archive.stores import NEW_SIZES
from tests.spark.test_cluster import CONF

address, package, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
session = local_session("seglog cluster", address, CONF)
session.sparkContext.addPyFile(package)
print("ready", flush=True)
archive_store(folder / "s", folder / "archive", session)
print("archived", flush=True)
restore_store(folder / "archive", folder / "again", session, sizes=NEW_SIZES, apply=True)
print("restored", flush=True)
columns = "topic string, body binary, queueId int, keys string"
rows = session.read.format("seglog").schema(columns).load(str(folder / "s")).repartition(8)
rows.write.format("seglog").mode("append").option("jobId", "copy").save(str(folder / "copy"))
print("written", flush=True)
session.stop()
"""


def job(root, now_ms, runner=None):
    return Compaction(
        root,
        POLICIES,
        split_bytes=8_000,
        runner=runner,
        clock=VirtualClock(now_ms),
        draw=lambda _bits: 4711,
    )


def killed_once(session, folder):
    """Returns a runner whose tasks write everything, and then lose their worker the first time."""

    class Killing(SparkRunner):
        @override
        def each(self, staged, do, work):
            marks = folder / f"killed {uuid.uuid4().hex}"
            marks.mkdir()

            def do_and_die(files, one):
                made = do(files, one[1])
                try:
                    os.close(os.open(marks / str(one[0]), os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    return made
                os._exit(1)

            return super().each(staged, do_and_die, list(enumerate(work)))

    return Killing(session)


def bytes_of(root):
    return {
        path.relative_to(root): path.read_bytes()
        for folder in ("commitlog", "consumequeue", "index")
        for path in (root / folder).rglob("*")
        if path.is_file()
    }


@pytest.fixture
def cluster(tmp_path):
    need_spark()
    (tmp_path / "cluster").mkdir()
    with running_cluster(tmp_path / "cluster", workers=2) as running:
        yield running


IN_ZIP = """
import importlib.resources
import json
import sys

import seglog
from seglog.doctor.check.check import check_store
from seglog.storage.kernels import KERNELS

data = importlib.resources.files("seglog") / "data" / "roll-store.tar.xz"
report = check_store(sys.argv[1])
found = [report.records, [str(finding) for finding in report.findings]]
print(json.dumps([seglog.__file__, KERNELS, len(data.read_bytes()) > 1000, *found]))
"""


def test_a_package_in_a_zip_has_its_data_and_kernels_of_python(tmp_path):
    filled = fill_random(tmp_path / "s", 51, 60)
    package = zip_package(tmp_path / "seglog-package.zip")
    ran = subprocess.run(
        [sys.executable, "-c", IN_ZIP, filled.root],
        env=os.environ | {"PYTHONPATH": str(package)},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        timeout=patience_s(60),
        check=True,
    )
    place, kernels, has_data, records, findings = json.loads(ran.stdout)
    assert (place, kernels, has_data) == (f"{package}/seglog/__init__.py", "python", True)
    checked = check_store(filled.root)
    assert (records, findings) == (checked.records, [str(finding) for finding in checked.findings])


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.campaign
def test_two_workers_audit_and_compact_and_one_is_killed(cluster, tmp_path):
    filled = fill_random(tmp_path / "s", 51, 400)
    twin = tmp_path / "twin"
    shutil.copytree(filled.root, twin, copy_function=shutil.copy2)
    checked = check_store(filled.root)
    wanted = job(twin, filled.now_ms, LocalRunner(RealFiles())).apply().plan
    package = zip_package(tmp_path / "seglog-package.zip")
    command = [sys.executable, "-c", DRIVER, cluster.address, package, filled.root, str(filled.now_ms)]
    with child(command, stdout=subprocess.PIPE, text=True, cwd=Path.cwd()) as driver:
        seen, records, findings = json.loads(not_none(driver.stdout).readline())
        assert (records, findings) == (checked.records, [str(finding) for finding in checked.findings])
        for place, kernels, has_data in seen:
            assert ("seglog-package.zip" in place, kernels, has_data) == (True, "python", True)
        for _ in looks("the verdicts", idle_s=120):
            if any(new_store(filled.root).glob(".verdicts/*")):
                break
            assert driver.poll() is None
        cluster.kill_worker(1)
        assert json.loads(not_none(driver.stdout).readline()) == [True, wanted.dropped]
        assert wait_for_end(driver, idle_s=60) == 0
    killed = [len(list(marks.iterdir())) for marks in tmp_path.glob("killed *")]
    assert len(killed) == 2
    assert min(killed) >= 4
    assert bytes_of(filled.root) == bytes_of(twin)
    assert_survived(filled.root, filled, survivors(filled, POLICIES))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.campaign
def test_an_archive_a_restore_and_a_writer_while_workers_are_killed(cluster, tmp_path):
    put(tmp_path / "s", 400)
    package = zip_package(tmp_path / "seglog-package.zip")
    command = [sys.executable, "-c", MOVING_DRIVER, cluster.address, package, tmp_path]
    kills = Counter[str]()
    with child(command, stdout=subprocess.PIPE, text=True, cwd=Path.cwd()) as driver:
        lines = not_none(driver.stdout)
        assert lines.readline() == "ready\n"
        for step in ("archived", "restored", "written"):
            with killing_python(cluster, kills, step):
                if step == "written":
                    cluster.kill_worker(1)
                assert lines.readline() == f"{step}\n"
        assert wait_for_end(driver, idle_s=60) == 0
    assert min(kills[step] for step in ("archived", "restored", "written")) >= 1, kills
    assert content(tmp_path / "again") == content(tmp_path / "s")
    assert bodies(tmp_path / "copy") == bodies(tmp_path / "s")
    assert sum(bodies(tmp_path / "copy").values()) == 400
    assert check_store(tmp_path / "copy").findings == ()


def bodies(root):
    with MessageStore.open(root, read_only=True) as store:
        return Counter(message.body for messages in served(store).values() for message in messages)


@contextmanager
def killing_python(cluster, kills, step):
    """Kills one of the executors' Python processes, a few times."""
    is_over = threading.Event()

    def kill():
        numbers = random.Random(step)
        while kills[step] < KILLS and not is_over.wait(numbers.uniform(0.5, 2)):
            workers = [pid for pid in cluster.python_workers() if pid not in known]
            if workers:
                known.add(chosen := numbers.choice(workers))
                with suppress(ProcessLookupError):
                    os.kill(chosen, signal.SIGKILL)
                    kills[step] += 1

    known: set[int] = set()
    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        join_thread(thread)
