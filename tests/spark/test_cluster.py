"""A cluster of two workers does what one process does, also when one of them is killed on the way.

The package reaches the executors as a zip, out of which no compiled kernel can be loaded.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from typing_extensions import override

from seglog.clock import VirtualClock
from seglog.doctor.check.check import check_store
from seglog.spark.compact.compact import Compaction
from seglog.spark.compact.job import SparkRunner
from seglog.spark.compact.policy import Policy
from seglog.spark.compact.swap import new_store
from seglog.storage.files.files import RealFiles
from tests.support.local_runner import LocalRunner
from tests.support.machine.spark_cluster import running_cluster, zip_package
from tests.support.machine.spark_here import need_spark
from tests.support.material.compactions import STEP_MS, assert_survived, fill_random, survivors
from tests.support.narrow import not_none

pytestmark = [pytest.mark.spark, pytest.mark.slow]

POLICIES = {
    "Prices": Policy(compact=True, delete_retention_ms=50 * STEP_MS),
    "Events": Policy(compact=True, retention_bytes=15_000),
}
DRIVER = """
import importlib.resources
import json
import sys
from pathlib import Path

from seglog.clock import VirtualClock
from seglog.spark.audit.stores import audit_store
from seglog.spark.session import local_session
from tests.spark.test_cluster import job, killed_once

address, package, root, now_ms = sys.argv[1:]
conf = {
    "spark.executorEnv.PYTHONPATH": "",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    "spark.cores.max": "2",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.speculation": "true",
    "spark.task.maxFailures": "20",
}
session = local_session("seglog cluster", address, conf)
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


def test_two_workers_audit_and_compact_and_one_is_killed(cluster, tmp_path):
    filled = fill_random(tmp_path / "s", 51, 400)
    twin = tmp_path / "twin"
    shutil.copytree(filled.root, twin, copy_function=shutil.copy2)
    checked = check_store(filled.root)
    wanted = job(twin, filled.now_ms, LocalRunner(RealFiles())).apply().plan
    package = zip_package(tmp_path / "seglog-package.zip")
    command = [sys.executable, "-c", DRIVER, cluster.address, package, filled.root, str(filled.now_ms)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path.cwd()) as driver:
        try:
            seen, records, findings = json.loads(not_none(driver.stdout).readline())
            assert (records, findings) == (checked.records, [str(finding) for finding in checked.findings])
            for place, kernels, has_data in seen:
                assert ("seglog-package.zip" in place, kernels, has_data) == (True, "python", True)
            while not any(new_store(filled.root).glob(".verdicts/*")):
                assert driver.poll() is None
                time.sleep(0.01)
            cluster.kill_worker(1)
            assert json.loads(not_none(driver.stdout).readline()) == [True, wanted.dropped]
            assert driver.wait() == 0
        finally:
            driver.kill()
    killed = [len(list(marks.iterdir())) for marks in tmp_path.glob("killed *")]
    assert len(killed) == 2
    assert min(killed) >= 4
    assert bytes_of(filled.root) == bytes_of(twin)
    assert_survived(filled.root, filled, survivors(filled, POLICIES))
