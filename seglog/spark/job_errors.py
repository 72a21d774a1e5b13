"""Errors of Spark and of the system, as errors of ours: what a job raises, from Python and from the shell."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from seglog.errors import SparkJobError
from seglog.spark.java_end import ended_java
from seglog.spark.packages import pyspark_problem
from seglog.spark.task_errors import error_of
from seglog.storage.files import explain_os_error

_SHUT_DOWN: Final = "SparkContext was shut down"
_ENDED: Final = (
    "run it again; where it ends again look at free memory and at the limits of the container (SIGKILL is"
    " mostly a lack of memory), and give Java more or less of it: --conf spark.driver.memory=2g"
)
_QUERY_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


@contextmanager
def job_errors() -> Iterator[None]:
    """Turns errors of Spark and of the system into ours; it decorates functions that are a whole job.

    Raises:
        SeglogError: As :func:`plain_errors`, and for an ``OSError`` of the system what it means for a store,
            such as :class:`~seglog.errors.FullError`.
    """
    try:
        if pyspark_problem() is None:
            with plain_errors():
                yield
        else:
            yield
    except OSError as error:
        if error.errno is None or isinstance(error, ConnectionError):  # no file is meant
            raise
        raise explain_os_error(error) from error


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turns errors of Spark into ours.

    Raises:
        SeglogError: What a task raised in the block, or :class:`~seglog.errors.SparkJobError` where Spark
            could not do what was asked of it.
    """
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    loggers = [logging.getLogger(name) for name in _QUERY_LOGGERS]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True  # they would print what is raised, with its Java stack, before it is
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        text = str(error)
        end = ended_java() if _SHUT_DOWN in text else None
        raise (error_of(text) if end is None else _gone(end)) from error
    except (Py4JError, ConnectionError, EOFError) as error:
        end = ended_java()
        if end is None:
            raise
        raise _gone(end) from error
    finally:
        for logger, was_disabled in zip(loggers, before, strict=True):
            logger.disabled = was_disabled


def _gone(end: str) -> SparkJobError:
    return SparkJobError(f"Java, in which Spark runs, is gone: {end}", help=_ENDED)
