"""Converts errors of Spark, of its tasks and of the system to errors of seglog, for jobs to raise.

Only text is sent from a worker to the driver: the traceback, with the cause last, inside of Java's message.
From it an error of seglog is built with its class, and so its exit code, and its advice (which tracebacks
show, see :class:`seglog.errors.SeglogError`).
"""

from __future__ import annotations

import errno
import inspect
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from seglog.errors import CorruptError, SeglogError, SparkJobError, error_classes
from seglog.spark.java_end import ended_java
from seglog.spark.packages import pyspark_problem
from seglog.storage.files import check_writable, explain_os_error

_SHOWN_LINES: Final = 5
_TRACEBACK: Final = "Traceback (most recent call last):"
_JAVA: Final = re.compile(
    r"\s*(at [\w.$]+[/(]|Driver stacktrace:|JVM stacktrace:|SQLSTATE: |\.\.\. \d+ more)"
)
_RAISED: Final = re.compile(r"((?:\w+\.)*\w+)(?:: (.*))?")
_ADVICE: Final = "help: "
_BETWEEN: Final = ("The above exception was", "During handling of the above")
_ERRNO: Final = re.compile(r"\[[Ee]rrno (\d+)\]")
_FILE: Final = re.compile(r"'([^'\n]*)'")
_NO_FOLDER: Final = "Mkdirs failed to create"
_OF_SYSTEM: Final = {
    "No space left on device": errno.ENOSPC,
    "Disk quota exceeded": errno.EDQUOT,
    "Read-only file system": errno.EROFS,
    "Permission denied": errno.EACCES,
    _NO_FOLDER: errno.EACCES,
}
"""Java's texts of system errors; it gives no error numbers."""
_JAVA_FILE: Final = re.compile(r"\bfile:(?://)?(/[^\s,;)]+)|: (/[^\n]+?) \(")
_JAVA_RAISED: Final = re.compile(r"(?:[a-z][\w$]*\.)+[A-Z][\w$]*(?:Exception|Error)(?:: |$)")
_CALLING: Final = "An error occurred while calling "
_SPARKS_OWN_HELP: Final = (
    "if these are Spark's temporary files, name another folder for them: --conf spark.local.dir=FOLDER"
)
_OS_ERRORS: Final = frozenset(
    {
        "OSError",
        "IOError",
        *(kind.__name__ for kind in OSError.__subclasses__() if kind.__module__ == "builtins"),
    }
)
_DAMAGE: Final = re.compile(r"(.*?) \+(\d+): (.*?)(?:: found (.*), expected (.*))?", re.DOTALL)
_SHUT_DOWN: Final = "SparkContext was shut down"
_ENDED: Final = (
    "run it again; where it ends again look at free memory and at the limits of the container (SIGKILL is"
    " mostly a lack of memory), and give Java more or less of it: --conf spark.driver.memory=2g"
)
_QUERY_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


@contextmanager
def job_errors() -> Iterator[None]:
    """Converts errors of Spark and of the system; it decorates functions that are a whole job.

    Raises:
        SeglogError: As for :func:`plain_errors`; an ``OSError`` of the system becomes the matching error of a
            store, such as :class:`~seglog.errors.FullError`.
    """
    try:
        if pyspark_problem() is None:
            with plain_errors():
                yield
        else:
            yield
    except OSError as error:
        if error.errno is None or isinstance(error, ConnectionError):  # not an error of a file
            raise
        raise explain_os_error(error) from error


@contextmanager
def plain_errors() -> Iterator[None]:
    """Converts errors of Spark.

    Raises:
        SeglogError: The error that a task raised in the block, or :class:`~seglog.errors.SparkJobError` for
            an error of Spark itself.
    """
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    loggers = [logging.getLogger(name) for name in _QUERY_LOGGERS]  # noqa: TID251 - PySpark's, not ours
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True  # these loggers would print the error with its Java stack before it is raised
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


@dataclass(frozen=True, slots=True)
class ToldError:
    """An error of a task as plain text, with which a job can continue; error classes take other arguments."""

    name: str
    said: str
    advice: str

    def error(self) -> SeglogError:
        """Returns an error of the same class."""
        return _again(_ours()[self.name], self.said, self.advice)


def told_error(error: OSError | SeglogError) -> ToldError:
    """Returns an error as text; an error of the system is converted first."""
    ours = explain_os_error(error) if isinstance(error, OSError) else error
    return ToldError(_name_of(type(ours)), str(ours), ours.help)


def error_of(text: str) -> SeglogError:
    """Returns the error that caused an error of Spark.

    Args:
        text: Text of the error, with or without the stack of Java.

    Returns:
        An error of the class that a task raised, if it is one of seglog; the matching error for an
        ``OSError`` of a task; :class:`~seglog.errors.FullError` if Spark had no space for its own files; else
        a :class:`~seglog.errors.SparkJobError`.
    """
    raised = _raised(text)
    if not raised:
        return _of_java(text)
    ours = _ours()
    # PySpark may fail while it handles an error of seglog, so the last class of seglog is taken.
    name, lines = next((one for one in reversed(raised) if one[0] in ours), raised[-1])
    advice = next((line for line in lines if line.startswith(_ADVICE)), None)
    said = "\n".join(lines[: lines.index(advice)] if advice is not None else lines).strip()
    if name not in ours:
        of_system = _of_system(name, said)
        if of_system is not None:
            return of_system
        return SparkJobError(f"{name.removeprefix('builtins.')}: {said}" if said else name)
    return _again(ours[name], said, None if advice is None else advice.removeprefix(_ADVICE))


def _of_java(text: str) -> SeglogError:
    """Returns the error of a failure of Java: text of its last cause, then of Spark, without class names."""
    lines = [line.rstrip() for line in text.partition("JVM stacktrace")[0].splitlines() if line.strip()]
    causes = [line for line in text.splitlines() if line.startswith("Caused by: ")]
    stack = ("\tat ", _CALLING, "Caused by: ")
    top = [_said_by(line) for line in lines if not _JAVA.match(line) and not line.startswith(stack)]
    cause = _said_by(causes[-1]) if causes else ""
    said = " / ".join(dict.fromkeys(one for one in (cause, *top[:_SHOWN_LINES]) if one))
    code = next((code for word, code in _OF_SYSTEM.items() if word in (cause or said)), None)
    if code is None:
        return SparkJobError(said or "Spark said nothing")
    file = _JAVA_FILE.search(text)
    path = next(filter(None, file.groups())).rstrip(".") if file is not None else None
    if path is not None and _NO_FOLDER in (cause or said):  # Hadoop does not state the reason
        try:
            check_writable(Path(path))
        except SeglogError as known:
            return known
    error = explain_os_error(OSError(code, os.strerror(code), *(() if path is None else (path,))))
    if path is None:
        error.help = f"{error.help}; {_SPARKS_OWN_HELP}"
    return error


def _said_by(line: str) -> str:
    """Returns the text of a Java exception, after the last class name."""
    *_before, said = _JAVA_RAISED.split(line.removeprefix("Caused by: ").removeprefix(": "))
    return said.partition(" SQLSTATE: ")[0].strip()


def _of_system(name: str, said: str) -> SeglogError | None:
    """Returns the error for an ``OSError`` of a task; None if it has no error number."""
    number = _ERRNO.search(said)
    if name.removeprefix("builtins.") not in _OS_ERRORS or number is None:
        return None
    file = _FILE.search(said)
    code = int(number[1])
    return explain_os_error(OSError(code, os.strerror(code), *(() if file is None else (file[1],))))


def _ours() -> dict[str, type[SeglogError]]:
    return {_name_of(kind): kind for kind in error_classes()}


def _name_of(kind: type[SeglogError]) -> str:
    return f"{kind.__module__}.{kind.__name__}"


def _raised(text: str) -> list[tuple[str, list[str]]]:
    """Returns the class at the end of each traceback before the stack of Java, and the lines after it."""
    lines: list[str] = []
    for line in text[text.find(_TRACEBACK) :].splitlines() if _TRACEBACK in text else ():
        if _JAVA.match(line):
            break
        lines.append(line.partition(" SQLSTATE: ")[0])
    starts = [at for at, line in enumerate(lines) if line.endswith(_TRACEBACK)]
    found = []
    for start, end in pairwise([*starts, len(lines)]):
        # Frames are indented; the line after the last frame is not.
        named = [(at, _RAISED.fullmatch(lines[at])) for at in range(start + 1, end)]
        at, match = next(((at, match) for at, match in named if match is not None), (end, None))
        if match is not None:
            rest = [line for line in lines[at + 1 : end] if not line.startswith(_BETWEEN)]
            found.append((match.group(1), [match.group(2) or "", *rest]))
    return found


def _again(kind: type[SeglogError], said: str, advice: str | None) -> SeglogError:
    if issubclass(kind, CorruptError):
        found = _DAMAGE.fullmatch(said)
        if found is not None:
            file, position, damage, is_there, expected = found.groups()
            file = "" if file == "buffer" else file
            error: SeglogError = kind(
                damage, file=file, position_bytes=int(position), expected=expected, found=is_there
            )
            error.help = advice or error.help
            return error
    for known in kind.__mro__:  # a base class, if the class has attributes that the text does not contain
        if issubclass(known, SeglogError) and _takes_text(known):
            return known(said, help=advice)
    return SparkJobError(said, help=advice)


def _takes_text(kind: type[SeglogError]) -> bool:
    try:
        inspect.signature(kind).bind("", help=None)
    except TypeError:
        return False
    return True
