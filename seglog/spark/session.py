"""Spark sessions on this machine, and the error that names what is missing for one."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Final, TypeAlias

from seglog.errors import MissingDependencyError
from seglog.spark import register
from seglog.spark.columnar_jar import columnar_settings
from seglog.spark.java import is_java_home_usable, java_help, java_problem
from seglog.spark.java_end import end_within, ended_java, printed_text
from seglog.spark.java_stderr import JavaStderr
from seglog.spark.packages import PYSPARK_HELP, pyspark_problem, require_packages
from seglog.spark.user_settings import (
    JAVA_OPTIONS_OF_USER,
    JAVA_SETTINGS,
    SUBMIT_OPTIONS,
    default_settings,
    java_options,
)

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

__all__ = [
    "Session",
    "java_problem",
    "local_session",
    "pyspark_problem",
    "require_packages",
    "require_spark",
    "session_for",
]

Session: TypeAlias = "SparkSession"
"""Type of a session for rooms that do not import Spark."""

LOCAL: Final = "local[*]"
"""All cores of this machine."""

_LOOPBACK: Final = "127.0.0.1"
_LOCAL_SETTINGS: Final = {
    "spark.driver.bindAddress": _LOOPBACK,
    "spark.driver.host": _LOOPBACK,
    "spark.sql.shuffle.partitions": "16",
}
_UTC: Final = {"spark.sql.session.timeZone": "UTC"}
"""Days of archives are days of UTC, on every machine."""
_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    # A Unix domain socket is faster than a loopback socket, and other users cannot connect to it.
    "spark.python.unix.domain.socket.enabled": "true",
}
BRIEF_JOB_BYTES: Final = 2 << 30
"""Up to this much log, Java's faster compiler alone takes less CPU time than both compilers.

Measured with PySpark 4.3 and Java 17: until the first query is answered 8.6 s against 11.4 s, then reads take
5.9 against 4.3 s/GB.
"""
_LOG4J: Final = """\
rootLogger.level = error
rootLogger.appenderRef.stdout.ref = stdout
appender.stdout.type = Console
appender.stdout.name = stdout
appender.stdout.target = SYSTEM_OUT
appender.stdout.layout.type = PatternLayout
appender.stdout.layout.pattern = %d{HH:mm:ss} %p %c: %m%n%ex
"""
"""Log on stdout, because stderr is that of the workers; errors are raised here too, without Java's stacks."""
_NOT_STARTED: Final = (
    "the Java that is here fits: run it again, and where it ends again look at free memory, at the limits of"
    " the container, and at options in JDK_JAVA_OPTIONS, JAVA_TOOL_OPTIONS and SPARK_SUBMIT_OPTS"
)


def require_spark() -> None:
    """Raises an error if no session can be made; it names all that is missing in one line.

    Raises:
        MissingDependencyError: Java, PySpark or both are missing.
    """
    java, packages = java_problem(), pyspark_problem()
    problems = [problem for problem in (java, packages) if problem is not None]
    if problems:
        steps = ([java_help()] if java is not None else []) + ([PYSPARK_HELP] if packages is not None else [])
        raise MissingDependencyError("; ".join(problems), help="; ".join(steps))


def local_session(
    app: str,
    master: str = LOCAL,
    conf: Mapping[str, str] = MappingProxyType({}),
    *,
    log_bytes: int | None = None,
) -> SparkSession:
    """Starts a session, by default on this machine, with a worker process for each core; stop it when done.

    Output of Java is not shown. Output of workers is written to stderr, such as warnings of messages that
    cannot be read (``failOnDataLoss=false``) and of topics that no store has. Takes 7 to 30 s. With a
    ``local`` master all ports are on the loopback interface. Settings of the user override those of seglog,
    wherever they are: ``conf``, ``spark-defaults.conf``, ``PYSPARK_SUBMIT_ARGS``, and for options of Java
    ``SPARK_SUBMIT_OPTS``.

    Args:
        app: Name of the session.
        master: Spark's master.
        conf: Settings of Spark.
        log_bytes: Bytes of log that the session will read, None if not known: for little log Java starts
            with options for a brief job (:data:`BRIEF_JOB_BYTES`).

    Raises:
        MissingDependencyError: PySpark or Java is missing, or Java does not start.
    """
    require_spark()
    import pyspark
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    is_local = master.startswith("local")
    ours = _SETTINGS | (_LOCAL_SETTINGS if is_local else {}) | _worker_settings()
    elsewhere = default_settings(os.environ, Path(pyspark.__path__[0]))
    settings = {name: value for name, value in ours.items() if name not in elsewhere} | _UTC | dict(conf)
    settings |= columnar_settings(pyspark.__version__, elsewhere | settings)
    spark_conf = SparkConf().setMaster(master).setAppName(app).setAll(list(settings.items()))
    # Without PYSPARK_PYTHON the workers may use another Python, one without numpy.
    environment: dict[str, str | None] = {"PYSPARK_PYTHON": sys.executable}
    if is_local:
        environment["SPARK_LOCAL_IP"] = _LOOPBACK
    if not is_java_home_usable():
        environment["JAVA_HOME"] = None
    with _environment(environment):
        running: JavaGateway | None = SparkContext._gateway  # a process has one JVM; it outlives sessions
        is_brief = log_bytes is not None and log_bytes <= BRIEF_JOB_BYTES
        said = [(elsewhere | settings).get(name, "") for name in JAVA_SETTINGS]
        printed = JavaStderr() if running is None else None
        if printed is not None:
            running = start_java(spark_conf, said, is_brief=is_brief, printed=printed)
        try:
            session = SparkSession(SparkContext(conf=spark_conf, gateway=running))
        finally:
            if printed is not None:
                printed.hand_on()
    register(session)
    return session


@contextmanager
def session_for(
    spark: SparkSession | None,
    app: str,
    master: str | None = None,
    conf: Mapping[str, str] = MappingProxyType({}),
    log_bytes: int | None = None,
) -> Iterator[SparkSession]:
    """Yields a session: the given one, the active one, or a new one that is stopped at the end.

    Args:
        spark: The given session.
        app: Name of a new session.
        master: Master of a new session; None for the one of ``spark-submit``, or else this machine.
        conf: Settings of a new session.
        log_bytes: Bytes of log that it will read, if known.

    Raises:
        MissingDependencyError: As for :func:`local_session`.
    """
    if spark is None and pyspark_problem() is None:
        from pyspark.sql import SparkSession

        spark = SparkSession.getActiveSession()
    if spark is not None:
        yield spark
        return
    if is_submitted():
        made = _submitted_session(app, master, conf)
    else:
        made = local_session(app, master or LOCAL, conf, log_bytes=log_bytes)
    try:
        yield made
    finally:
        _stop(made)


def _stop(session: SparkSession) -> None:
    """Stops a session, also if its Java is gone: the error that ended it is being raised."""
    from py4j.protocol import Py4JError

    try:
        session.stop()
    except (Py4JError, ConnectionError):
        if ended_java() is None:
            raise


def is_submitted() -> bool:
    """Returns whether ``spark-submit`` runs this process: its Java runs already, with master and settings."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _submitted_session(app: str, master: str | None, conf: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(app).config(map=dict(conf))
    return (builder if master is None else builder.master(master)).getOrCreate()


def _worker_settings() -> dict[str, str]:
    """Returns settings with which workers import this seglog, also from a clone that was not installed."""
    import seglog

    folder = Path(seglog.__path__[0]).resolve().parent
    if folder.name in ("site-packages", "dist-packages"):
        return {}
    return {"spark.executorEnv.PYTHONPATH": str(folder)}


def start_java(
    conf: SparkConf,
    said: Iterable[str] = (),
    *,
    is_brief: bool = False,
    printed: JavaStderr | None = None,
) -> JavaGateway:
    """Starts the JVM; its output is shown only if it does not start.

    Args:
        conf: Settings of Spark.
        said: Options of Java in these settings.
        is_brief: As for :func:`~seglog.spark.user_settings.java_options`.
        printed: Reads its stderr; None for a new reader that copies nothing.
    """
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    stderr = printed or JavaStderr()
    with tempfile.TemporaryDirectory(prefix="seglog-spark-") as folder:
        log_settings = Path(folder) / "log4j2.properties"
        log_settings.write_text(_LOG4J)
        texts = [*said, *(os.environ.get(name, "") for name in JAVA_OPTIONS_OF_USER)]
        options = [
            f"-Dlog4j2.configurationFile={log_settings.as_uri()}",
            *java_options(texts, is_brief=is_brief),
            os.environ.get(SUBMIT_OPTIONS, ""),
        ]
        before_all = {SUBMIT_OPTIONS: " ".join(options)}
        launch: Callable[[SparkConf, dict[str, IO[str] | JavaStderr]], JavaGateway] = launch_gateway
        with (Path(folder) / "printed").open("w+") as stdout, _environment(before_all):
            try:
                return launch(conf, {"stdout": stdout, "stderr": stderr})
            except PySparkRuntimeError as error:
                stderr.close_writer()
                stdout.seek(0)
                text = printed_text([*stdout.read().splitlines(), *stderr.lines_so_far()])
                end = end_within(error)
                raise MissingDependencyError(
                    f"Java did not start for Spark: {text}{'' if end is None else f'; {end}'}",
                    help=_NOT_STARTED if java_problem() is None else java_help(),
                ) from error
            finally:
                stderr.close_writer()


@contextmanager
def _environment(values: Mapping[str, str | None]) -> Iterator[None]:
    """Sets or removes environment variables within the block: Spark reads them when it starts."""
    before = {name: os.environ.get(name) for name in values}
    _set_environment(values)
    try:
        yield
    finally:
        _set_environment(before)


def _set_environment(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
