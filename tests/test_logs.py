"""What this package logs is one line, for any names and remarks from the network."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from typing_extensions import override

from seglog.logs import logger


class Mute(Exception):  # noqa: N818 - an application's
    """An error that has no text."""

    @override
    def __str__(self) -> str:
        raise ValueError("there is none")


@pytest.mark.parametrize(
    ("remark", "logged"),
    [
        ("no such topic", "refused: no such topic"),
        ("no\nERROR all is lost", r"refused: no\nERROR all is lost"),
        ("\x1b[2J", r"refused: \x1b[2J"),
        ("half \udcff a pair", r"refused: half \udcff a pair"),
        ("\u202eturned", r"refused: \u202eturned"),
    ],
)
def test_a_message_is_one_line_that_any_handler_can_write(caplog, remark, logged):
    logger("seglog.tests").warning("refused: %s", remark)
    assert caplog.messages == [logged]
    caplog.messages[0].encode()


def test_what_a_terminal_can_show_keeps_its_arguments(caplog):
    logger("seglog.tests").warning("topic %s of %d queues: größer", "T", 4)
    assert caplog.records[0].args == ("T", 4)


def test_a_logger_asked_for_again_escapes_once(caplog):
    assert logger("seglog.tests") is logger("seglog.tests") is logging.getLogger("seglog.tests")
    assert len(logger("seglog.tests").filters) == 1
    logger("seglog.tests").warning("%s", "\n")
    assert caplog.messages == [r"\n"]


# What an application has in the way


class Broken(logging.Handler):
    """Raises where a sink of logs is gone."""

    @override
    def emit(self, record: logging.LogRecord) -> None:
        raise OSError("syslog is gone")


def refuses(_record: logging.LogRecord) -> bool:
    raise OSError("a filter of the application fails")


@contextmanager
def handled_by(handler: logging.Handler) -> Iterator[None]:
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


def test_who_logs_goes_on_where_a_handler_or_a_filter_of_one_raises(capsys):
    filtered = logging.StreamHandler(io.StringIO())
    filtered.addFilter(refuses)
    for handler, why in ((Broken(), "syslog is gone"), (filtered, "a filter of the application fails")):
        with handled_by(handler):
            logger("seglog.tests").warning("refused: %s", "no such topic")
        said = capsys.readouterr().err
        assert why in said
        assert "refused: %s" in said


def test_an_error_without_text_is_named_by_its_kind_and_other_arguments_stay(caplog):
    logger("seglog.tests").warning("attempt %d at %s: %s", 2, "\n", Mute(), exc_info=Mute())
    assert caplog.messages == [r"attempt 2 at \n: <Mute whose str() fails>"]


def test_a_format_that_does_not_fit_its_arguments_is_said_and_not_raised(capsys):
    logger("seglog.tests").warning("%d queues", "four")
    assert "%d format" in capsys.readouterr().err
