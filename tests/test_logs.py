"""What this package logs is one line, whatever names and remarks from the network are in it."""

from __future__ import annotations

import logging

import pytest

from seglog.logs import logger


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
