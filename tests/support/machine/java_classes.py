"""Javas that tests start load Spark's classes from an archive: half of what a start costs is parsing them.

The archive is made once for a Java and a PySpark, in ``build/``; Java itself holds it against the jars, and
continues without one that does not fit. The gate takes one that is there but makes none: it starts few Javas.
Javas of tests end before the better compiler pays, so they do not start it. Pythons that Java starts import
the PySpark that is installed, not the zip of the same modules.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Final

from seglog.spark.user_settings import SUBMIT_OPTIONS
from tests.support.machine.patience import patience_s
from tests.support.scale import is_gate

ROOT: Final = Path(__file__).resolve().parents[3]
FOLDER: Final = ROOT / "build" / "java-classes"
_QUICK_WORKERS: Final = Path(__file__).parent / "quick_workers"
_QUICK: Final = "-XX:TieredStopAtLevel=1 -XX:MetaspaceSize=256m"
"""Without the second one, Java collects its whole heap each time that it has loaded some more classes."""
_TAKE: Final = "-XX:SharedArchiveFile="
_SILENT: Final = "-Xlog:cds=off -Xlog:cds+dynamic=off"
_LIMIT_S: Final = 120.0
_WORK: Final = """
import sys
from pathlib import Path

from pyspark import SparkContext

from seglog import MessageStore, NewMessage
from seglog.spark.session import local_session

folder = Path(sys.argv[1])
with MessageStore.open(folder / "s") as store:
    store.put_batch("T", [NewMessage(b"m", keys="k")] * 9)
session = local_session("classes", log_bytes=0)
java = SparkContext._gateway
rows = session.read.format("seglog").load(str(folder / "s"))
rows.write.partitionBy("topic").parquet(str(folder / "p"))
session.read.parquet(str(folder / "p")).createOrReplaceTempView("p")
session.sql("select queueId, count(*) as n from p group by queueId order by n").collect()
print(session.sparkContext.parallelize(range(4), 2).map(lambda n: n + 1).collect())
session.stop()
java.shutdown()
java.proc.stdin.close()
java.proc.wait()
"""


def quicken_java() -> None:
    """Has Javas that this process and its children start for Spark take the archive, if there is one."""
    said = os.environ.get(SUBMIT_OPTIONS, "")
    if _TAKE not in said:
        archive = _archive()
        take = [] if archive is None else [f"{_TAKE}{archive}", _SILENT]
        os.environ[SUBMIT_OPTIONS] = " ".join([_QUICK, *take, said]).strip()
        folders = [str(_QUICK_WORKERS), os.environ.get("PYTHONPATH")]
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, folders))


def quick_java() -> str:
    """Returns options of a Java beside a session: those that the session's has here."""
    return os.environ.get(SUBMIT_OPTIONS, "")


def _archive() -> Path | None:
    """Returns the archive, made by the first that asks; None where it cannot or must not be made."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    known = f"{java and Path(java).resolve()} {sys.prefix} {metadata.version('pyspark')}"
    archive = FOLDER / f"{hashlib.sha256(known.encode()).hexdigest()[:16]}.jsa"
    if " " in str(archive):  # Spark splits options there
        return None
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists() and not is_gate():
            _make(archive)
    return archive if archive.exists() and archive.stat().st_size else None


def _make(archive: Path) -> None:
    """Makes the archive, or an empty file that says that this Java cannot."""
    work = archive.with_suffix(".work")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    made = work / archive.name
    options = f"{_QUICK} -XX:ArchiveClassesAtExit={made} {_SILENT}"
    done = subprocess.run(
        [sys.executable, "-c", _WORK, work],
        env={**os.environ, SUBMIT_OPTIONS: options},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=patience_s(_LIMIT_S),
        check=False,
    )
    if not made.exists():
        print(f"no archive of Java's classes: {done.stderr}", file=sys.stderr)
        made.touch()
    made.rename(archive)
    shutil.rmtree(work)
