"""What a task raised arrives on the driver, with its class, its text and its advice."""

from __future__ import annotations

import errno
import os
import traceback
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from seglog.errors import (
    ConfigError,
    CorruptError,
    FullError,
    InvalidArgumentError,
    NotFoundError,
    OffsetRangeError,
    ReadOnlyError,
    SeglogError,
    SparkJobError,
    StoreError,
)
from seglog.spark.audit.stores import audit_stores
from seglog.spark.local_batches import local_batches
from seglog.spark.reconcile.outcome import reconcile_all
from seglog.spark.task_errors import error_of, plain_errors
from tests.support.material.golden import extract

IN_JAVA = (
    "[PYTHON_EXCEPTION] An exception was thrown from the Python worker: {} SQLSTATE: 38000\n\tat org.apache.X"
)


def traceback_of(raises: Callable[[], object]) -> str:
    try:
        raises()
    except Exception as error:  # noqa: BLE001 - the text of any
        return IN_JAVA.format("".join(traceback.format_exception(error)))
    raise AssertionError("nothing was raised")


def corrupt() -> None:
    error = CorruptError("body-crc", file="commitlog/0: x", position_bytes=17, expected="0x1", found="0x2")
    error.help = "read on"
    raise error


def wrapped() -> None:
    try:
        corrupt()
    except CorruptError as error:
        raise ConfigError("two\nlines", help="look") from error


def test_an_error_of_ours_is_made_again():
    error = error_of(traceback_of(corrupt))
    assert type(error) is CorruptError
    assert str(error) == "commitlog/0: x +17: body-crc: found 0x2, expected 0x1"
    assert (error.kind, error.file, error.position_bytes, error.help) == (
        "body-crc",
        "commitlog/0: x",
        17,
        "read on",
    )


def test_the_last_of_a_chain_counts():
    error = error_of(traceback_of(wrapped))
    assert (type(error), str(error), error.help) == (ConfigError, "two\nlines", "look")


def test_an_error_of_ours_counts_before_what_its_handling_failed_with():
    def fails() -> None:
        try:
            corrupt()
        except CorruptError:
            raise UnboundLocalError("cannot access local variable 'reader'")  # noqa: B904 - as PySpark does

    error = error_of(traceback_of(fails))
    assert (type(error), error.help) == (CorruptError, "read on")


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        (errno.ENOSPC, FullError, "/a store/file: the file system is full"),
        (errno.EROFS, ReadOnlyError, "/a store/file: the file system is read-only"),
        (errno.EACCES, StoreError, "/a store/file: permission denied"),
        (errno.ENOENT, NotFoundError, "/a store/file: no such file or folder"),
    ],
)
def test_an_error_of_the_system_in_a_task_is_what_it_means_for_a_store(code, kind, text):
    def fails() -> None:
        raise OSError(code, os.strerror(code), "/a store/file")

    error = error_of(traceback_of(fails))
    assert (type(error), str(error)) == (kind, text)


def test_a_full_disk_that_arrow_meets_is_one():
    def fails() -> None:
        raise OSError("[Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device")

    assert type(error_of(traceback_of(fails))) is FullError


def test_a_full_disk_that_java_meets_is_one_of_spark():
    error = error_of(
        "An error occurred while calling o57.collect.\n: org.apache.spark.SparkException: Job aborted due to"
        " stage failure: Task 0 in stage 1.0 failed 1 times: java.io.IOException: No space left on device\n"
        "\tat java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)\n"
    )
    assert (type(error), str(error)) == (FullError, "the file system is full")
    assert "spark.local.dir" in error.help


WRITE = (
    "An error occurred while calling o95.save.\n"
    ": org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to"
    " file:/full/out/queues. SQLSTATE: 58030\n"
    "\tat org.apache.spark.sql.errors.QueryExecutionErrors$.taskFailedWhileWritingRowsError(Q.scala:770)\n"
    "\t... 15 more\n"
    "Caused by: java.io.IOException: {}\n"
    "\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)\n"
)


@pytest.mark.parametrize(
    ("cause", "kind", "text"),
    [
        ("No space left on device", FullError, "the file system is full"),
        ("Mkdirs failed to create file:/full/out/queues/_temporary/0", StoreError, "permission denied"),
        ("/full/out/queues/part-0 (Read-only file system)", ReadOnlyError, "the file system is read-only"),
    ],
)
def test_a_write_of_java_that_the_system_refuses_is_told_by_its_cause(cause, kind, text):
    error = error_of(WRITE.format(cause))
    assert type(error) is kind
    assert str(error).startswith("/full/out/queues")
    assert str(error).endswith(f": {text}")


def test_of_an_error_of_java_the_cause_comes_first_and_no_class_or_stack():
    error = error_of(WRITE.format("the codec is gone"))
    assert type(error) is SparkJobError
    assert str(error) == (
        "the codec is gone / [TASK_WRITE_FAILED] Task failed while writing rows to file:/full/out/queues."
    )


def test_an_error_whose_attributes_do_not_travel_is_one_above_it():
    def out_of_range() -> None:
        raise OffsetRangeError("too far", min_offset=1, max_offset=2)

    error = error_of(traceback_of(out_of_range))
    assert (type(error), str(error), error.help) == (StoreError, "too far", OffsetRangeError.help)


def test_of_another_error_the_cause_is_said_and_not_the_first_lines():
    error = error_of(traceback_of(lambda: {"here": 1}["gone"]))
    assert (type(error), str(error)) == (SparkJobError, "KeyError: 'gone'")
    plain = error_of("[UNRESOLVED_COLUMN] no such column\n\tat org.apache\nJVM stacktrace:\nmore")
    assert str(plain) == "[UNRESOLVED_COLUMN] no such column"


def test_notes_of_an_error_stay_beside_its_advice():
    error = SeglogError("what", help="first")
    error.add_note("seed 5")
    error.help = "second"
    assert traceback.format_exception_only(error)[1:] == ["help: second\n", "seed 5\n"]


@pytest.mark.spark
def test_damage_that_a_task_finds_is_a_corrupt_error(spark: SparkSession, tmp_path):
    root = str(extract("d-magic", tmp_path))
    frame = spark.read.format("seglog").load(root)
    for ask in (frame.count, frame.collect, lambda: list(local_batches(frame))):
        with pytest.raises(CorruptError, match=r"commitlog/\d{20} \+\d+: magic") as caught, plain_errors():
            ask()
        assert caught.value.file.startswith("commitlog/")
        assert 'option("failOnDataLoss", "false")' in caught.value.help
    with pytest.raises(InvalidArgumentError, match="no option 'topik'"), plain_errors():
        spark.read.format("seglog").option("topik", "T").load(root)


def test_an_audit_that_spark_cannot_do_raises_an_error_of_ours(spark: SparkSession, tmp_path, monkeypatch):
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(tmp_path / "no-python"))
    with pytest.raises(SparkJobError, match="no-python"):
        audit_stores([extract("roll", tmp_path)], spark=spark)


@pytest.mark.parametrize(
    ("asked", "text"),
    [({"receipts": "none.parquet"}, "none.parquet"), ({"folder": "made", "form": "abacus"}, "abacus")],
)
def test_a_reconciliation_that_spark_cannot_do_raises_an_error_of_ours(
    spark: SparkSession, tmp_path, asked, text
):
    asked = {name: str(tmp_path / said) if name != "form" else said for name, said in asked.items()}
    with pytest.raises(SparkJobError, match=text):
        reconcile_all(spark, [extract("roll", tmp_path)], messages=True, **asked)
