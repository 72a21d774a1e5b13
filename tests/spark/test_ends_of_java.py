"""A Java that ends under a job, and Ctrl-C under one, as Python sees them: nothing here starts Java.

`test_sql_command.py` has the same with Java, in the campaign.
"""

from __future__ import annotations

import logging
import signal
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from seglog.cli.spark.interrupts import plain_interrupts
from seglog.errors import SparkJobError
from seglog.spark.task_errors import plain_errors
from tests.support.rows import every_row

BROKEN = [
    Py4JNetworkError("Answer from Java side is empty"),
    ConnectionRefusedError(111, "Connection refused"),
    EOFError(),
    PySparkException("Job 0 cancelled because SparkContext was shut down"),
]
"""What calls raise when their Java ends."""


@pytest.fixture
def java(start_child, monkeypatch):
    """A process in the place of Java."""
    process = start_child(["sleep", "60"])
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))
    return process


def test_a_java_that_was_killed_is_named_by_each_call_that_it_broke(java):
    java.kill()
    with every_row() as row:
        for error in BROKEN:
            with row(type(error).__name__):
                with pytest.raises(SparkJobError) as caught, plain_errors():
                    raise error
                assert str(caught.value) == "Java, in which Spark runs, is gone: it was killed by SIGKILL"
                assert caught.value.help.startswith("run it again")
                assert caught.value.exit_code == 51


def test_a_connection_that_breaks_without_an_end_of_our_java_stays_what_it_is(monkeypatch):
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace())  # another process has started it
    with pytest.raises(ConnectionRefusedError), plain_errors():
        raise ConnectionRefusedError(111, "Connection refused")


def test_an_interrupt_that_breaks_a_connection_is_an_interrupt():
    def call():
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise Py4JNetworkError("broken") from None

    with pytest.raises(KeyboardInterrupt), plain_interrupts():
        call()
    with pytest.raises(Py4JNetworkError), plain_interrupts():
        raise Py4JNetworkError("broken")


def test_stacks_of_an_interrupt_are_not_logged_but_others_are(caplog):
    log = logging.getLogger("py4j.clientserver")
    with plain_interrupts():
        for error in (KeyboardInterrupt(), ConnectionError("another")):
            try:
                raise error
            except type(error):
                log.exception("a call broke")
        log.error("without a stack")
    assert [bool(record.exc_info) for record in caplog.records] == [True, False]


def test_the_handler_of_the_user_is_put_back_once_there_is_a_session():
    before = signal.getsignal(signal.SIGINT)
    try:
        with plain_interrupts() as take_back:
            signal.signal(signal.SIGINT, lambda _number, _frame: None)  # as Spark does
            take_back()
            assert signal.getsignal(signal.SIGINT) is before
    finally:
        signal.signal(signal.SIGINT, before)
