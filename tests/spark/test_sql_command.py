"""``seglog spark sql``: the answer, and what it is without."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from seglog import MessageStore
from seglog.cli.main import commands
from seglog.spark.questions import doing_of, running_of
from seglog.spark.views import make_views
from tests.support.machine.children import child
from tests.support.machine.patience import looks, patience_s
from tests.support.machine.spark_here import need_spark
from tests.support.material.golden import extract
from tests.support.rows import every_row
from tests.support.scale import chance, is_gate

pytestmark = pytest.mark.spark
COUNT = "SELECT count(*) AS n FROM messages"


@pytest.fixture
def ask(spark: SparkSession):
    """Asks in the session of the tests."""

    def ask(*words):
        return CliRunner().invoke(commands, ["spark", "sql", *map(os.fspath, words)])

    return ask


def test_an_answer_without_messages_that_are_lost_says_so(ask, tmp_path):
    root = extract("d-magic", tmp_path)
    ran = ask(root, COUNT, "--json")
    assert json.loads(ran.stdout) == {"n": 399}
    assert ran.exit_code == 36
    assert f"{root}: data loss: " in ran.stderr
    assert "commitlog/" in ran.stderr
    assert "--allow-loss" in ran.stderr
    assert ask(root, COUNT, "--allow-loss", "--json").exit_code == 0
    assert ask(root, "SELECT count(*) FROM index").exit_code == 0
    assert ask(root, "SELECT count(*) FROM kafka").exit_code == 36


def test_an_answer_of_whole_stores_ends_with_0(ask, tmp_path):
    ran = ask(extract("roll", tmp_path), COUNT, "--json")
    assert (ran.exit_code, ran.stderr, json.loads(ran.stdout)) == (0, "", {"n": 400})


def test_globs_mean_the_same_stores_for_the_answer_and_for_what_it_is_without(ask, tmp_path):
    for name in ("a", "b", "other"):
        with MessageStore.open(tmp_path / name) as store:
            store.put("T", b"x")
    ran = ask(tmp_path / "?", COUNT, "--json")
    assert (ran.exit_code, ran.stderr, json.loads(ran.stdout)) == (0, "", {"n": 2})
    audit = CliRunner().invoke(commands, ["spark", "audit", f"{tmp_path}/{{a,b}}", "--json"])
    assert (audit.exit_code, audit.stdout.count('"kind":"audit"')) == (0, 2)
    gone = ask(tmp_path / "c*", COUNT)
    assert (gone.exit_code, gone.stdout) == (13, "")
    assert "globs are" in gone.stderr


def test_all_stores_that_are_not_there_are_named(ask, tmp_path):
    root = extract("roll", tmp_path)
    ran = ask(tmp_path / "gone", root, tmp_path / "away", COUNT)
    assert (ran.exit_code, ran.stdout) == (13, "")
    assert f"not read: {tmp_path / 'gone'}: " in ran.stderr
    assert f"not read: {tmp_path / 'away'}: " in ran.stderr


def test_a_lost_tail_is_said(ask, tmp_path):
    with MessageStore.open(tmp_path / "s", segment_size_bytes=8192, queue_file_size_bytes=400) as store:
        places = [store.put("T", b"%d" % number + bytes(200)) for number in range(90)]
    cut = places[70].phy_offset
    first = cut - cut % 8192
    for path in (tmp_path / "s" / "commitlog").iterdir():
        if int(path.name) > first:
            path.unlink()
        elif int(path.name) == first:
            path.write_bytes(path.read_bytes()[: cut - first].ljust(8192, b"\0"))
    ran = ask(tmp_path / "s", COUNT, "--json")
    assert (ran.exit_code, json.loads(ran.stdout)) == (36, {"n": 70})
    assert "queue offsets 70..89 of T/0" in ran.stderr


DOES = [
    "insert into messages select * from messages",
    "with m as (select * from messages) insert into messages select * from m",
    "from messages insert into messages select *",
    "insert overwrite directory '{here}/out' using parquet select 1",
    "create table x(a int)",
    "create table x using parquet as select 1 a",
    "create or replace temp view messages as select 1",
    "execute immediate 'create table x(a int)'",
    "explain execute immediate 'create table x(a int)'",
    "explain create table x(a int)",
    "explain with m as (select * from messages) insert into messages select * from m",
    "begin create table x(a int); end",
    "set spark.sql.ansi.enabled=false",
    "drop view messages",
    "cache table messages",
]
"""Statements that do something."""
RUNS = [
    "select transform(topic) using 'touch {here}/out' as (a string) from messages",
    "select java_method('java.lang.System', 'getProperty', 'user.dir')",
    "select 1 + length(`reflect`('java.lang.System', 'getProperty', 'user.dir'))",
    "with a as (select try_reflect('java.lang.System', 'lineSeparator') x) select * from a",
    "select * from messages where topic in (select reflect('java.lang.System', 'lineSeparator'))",
    "select identifier('refl' || 'ect')('java.lang.System', 'lineSeparator')",
]
"""Questions that would run a command or a method of Java."""
ASKS = [
    " -- a comment\n(select 1 as n) ; ",
    "with a as (select 1 as n) select * from a",
    "values 1",
    "table messages",
    "from messages |> aggregate count(*)",
    "show tables",
    "describe messages",
    "describe query select 1",
    "select transform(array(1, 2), x -> x + 1), 'reflect(1)'",
    "explain select * from messages",
]


@pytest.fixture
def one_message(tmp_path, monkeypatch):
    """A store with a message, and an empty working folder beside it; nothing is added to either."""
    with MessageStore.open(tmp_path / "s") as store:
        store.put("T", b"x")
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    yield tmp_path / "s"
    assert [*(tmp_path / "cwd").iterdir()] == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cwd", "s"]
    with MessageStore.open(tmp_path / "s", read_only=True) as store:
        assert [queue.max_offset for queue in store.queues()] == [1]


def some(name, rows):
    """Returns the rows that are tried through the command: at the gate two, others with each commit."""
    return chance("sql command", name).sample(rows, 2) if is_gate() else rows


def test_what_does_something_is_wrong_usage_and_is_not_run(spark: SparkSession, ask, one_message, tmp_path):
    by_command = some("runs", RUNS)
    make_views(spark, [str(one_message)])
    with every_row() as row:
        for statement in (*DOES, *RUNS):
            with row(statement):
                asked = statement.format(here=tmp_path)
                if statement in DOES:
                    assert doing_of(spark, asked) is not None
                else:
                    assert doing_of(spark, asked) is None
                    assert running_of(spark.sql(asked)) is not None
                    if statement not in by_command:
                        continue
                ran = ask(one_message, asked)
                assert (ran.exit_code, ran.stdout) == (2, "")
                assert "nothing was run" in ran.stderr


def test_what_only_asks_is_asked(spark: SparkSession, ask, one_message):
    by_command = some("asks", ASKS)
    make_views(spark, [str(one_message)])
    with every_row() as row:
        for question in ASKS:
            with row(question):
                assert doing_of(spark, question) is None
                assert running_of(spark.sql(question.rstrip().removesuffix(";"))) is None
                if question in by_command:
                    ran = ask(one_message, question, "--allow-loss")
                    assert (ran.exit_code, ran.stderr) == (0, "")


SAID = {
    "X'61c3a4'": "a\u00e4",
    "X'ff00'": "/wA=",
    "unhex(repeat('ff', 100))": base64.b64encode(b"\xff" * 100).decode(),
    "cast(1.10 as decimal(10,2))": "1.10",
    "1.5e300D": 1.5e300,
    "cast('NaN' as double)": "NaN",
    "-cast('Infinity' as float)": "-Infinity",
    "9223372036854775807": 9223372036854775807,
    "true": True,
    "null": None,
    "'\U0001f600\\u2028\\u007f'": "\U0001f600\u2028\x7f",
    "timestamp'2024-01-01 00:00:00'": "2024-01-01T00:00:00",
    "timestamp'2024-01-01 12:00:00.12'": "2024-01-01T12:00:00.120000",
    "timestamp'-0100-01-01'": "-0100-01-01T00:00:00",
    "timestamp_ntz'2024-01-01 00:00:00'": "2024-01-01T00:00:00",
    "date'2024-01-01'": "2024-01-01",
    "date'-0044-03-15'": "-0044-03-15",
    "interval '1' day": "INTERVAL '1' DAY",
    "interval '1-2' year to month": "INTERVAL '1-2' YEAR TO MONTH",
    "array(interval '1' day, null)": ["INTERVAL '1' DAY", None],
    """parse_json('{"a":[1,null]}')""": {"a": [1, None]},
    "named_struct('x.y', X'61', 'n', null)": {"x.y": "a", "n": None},
    "cast(null as struct<a: int>)": None,
    "map(named_struct('a', 1), X'ff')": {'{"a":1}': "/w=="},
    "map(X'ff', 2, X'61', null)": {"/w==": 2, "a": None},
    "map(date'2024-01-01', 1)": {"2024-01-01": 1},
}
"""Values of SQL, and what they are in JSON."""


def test_json_has_values_of_every_type(ask, tmp_path):
    with MessageStore.open(tmp_path / "s"):
        pass
    asked = ", ".join(f"{value} c{at}" for at, value in enumerate(SAID))
    ran = ask(tmp_path / "s", f"select {asked}", "--json")
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout.isascii()
    found = json.loads(ran.stdout, parse_constant=pytest.fail)
    assert dict(zip(SAID, found.values(), strict=True)) == SAID
    shown = ask(tmp_path / "s", f"select {asked}")
    assert shown.exit_code == 0
    assert "INTERVAL '1' DAY" in shown.stdout


def test_json_refuses_a_name_that_two_columns_have(ask, tmp_path):
    with MessageStore.open(tmp_path / "s"):
        pass
    for query in ("select 1 a, 2 a", "select named_struct('a', 1, 'a', 2) b"):
        ran = ask(tmp_path / "s", query, "--json")
        assert (ran.exit_code, ran.stdout) == (24, "")
        assert "two columns are called 'a'" in ran.stderr
        assert "alias" in ran.stderr
    assert json.loads(ask(tmp_path / "s", "select 1 a, 2 A", "--json").stdout) == {"a": 1, "A": 2}
    assert ask(tmp_path / "s", "select 1 a, 2 a").stdout.split() == ["a", "a", "1", "2"]


def test_rows_come_in_order_and_batch_by_batch(ask, tmp_path):
    with MessageStore.open(tmp_path / "s"):
        pass
    ran = ask(tmp_path / "s", "select id from range(0, 25000, 1, 3) order by id desc", "--json")
    assert [json.loads(line)["id"] for line in ran.stdout.splitlines()] == [*range(24999, -1, -1)]


NOT_TAKEN = {
    "SELEC 1": "Syntax error at or near 'SELEC'. (line 1, pos 0)",
    "SELECT tpic FROM messages": "`tpic` cannot be resolved. Did you mean one of the following? [",
    "SELECT 1 FROM nowhere": "The table or view `nowhere` cannot be found.",
    "SELECT noway(topic) FROM messages": "Cannot resolve routine `noway`",
}


def test_a_query_that_spark_does_not_take_is_wrong_usage(ask, one_message):
    with every_row() as row:
        for query, said in NOT_TAKEN.items():
            with row(query):
                ran = ask(one_message, query)
                assert (ran.exit_code, ran.stdout) == (2, "")
                assert "QUERY: " in ran.stderr
                assert said in " ".join(ran.stderr.split())
                assert "== SQL ==" not in ran.stderr
                assert "Project" not in ran.stderr


@pytest.mark.campaign
def test_ctrl_c_ends_a_question_quietly_with_130(tmp_path):
    with MessageStore.open(tmp_path / "s") as store:
        store.put("T", b"x")
    logged = {"enabled": "true", "dir": tmp_path.as_uri(), "compress": "false", "rolling.enabled": "false"}
    places = [word for name, value in logged.items() for word in ("--conf", f"spark.eventLog.{name}={value}")]
    question = "SELECT sum(sqrt(id)) FROM range(1000000000000)"
    command = [sys.executable, "-m", "seglog.cli.main", "spark", "sql", tmp_path / "s", question]
    with child(
        [*command, *places], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as asking:
        for _ in looks("the job", idle_s=90, look_s=0.05):
            if any("JobStart" in log.read_text() for log in tmp_path.glob("*.inprogress")):
                break
            assert asking.poll() is None
        os.killpg(asking.pid, signal.SIGINT)  # as a terminal does
        said = asking.communicate(timeout=patience_s(60))
    assert (asking.returncode, said) == (130, (b"", b""))


ENDS_JAVA_UNDER_A_JOB = """
import contextlib, os, signal, threading, time
from pyspark import SparkContext
from seglog.cli.main import main

def end_java():
    while (context := SparkContext._active_spark_context) is None or not running(context):
        time.sleep(0.05)
    os.kill(context._jvm.java.lang.ProcessHandle.current().pid(), signal.SIGKILL)

def running(context):
    with contextlib.suppress(Exception):  # the context is being made
        return context.statusTracker().getActiveJobsIds()

threading.Thread(target=end_java, daemon=True).start()
raise SystemExit(main())
"""


@pytest.mark.campaign
def test_java_that_ends_under_a_job_is_named(tmp_path):
    need_spark()
    with MessageStore.open(tmp_path / "s"):
        pass
    query = "select sum(id % 7) from range(10000000000000)"
    command = [sys.executable, "-c", ENDS_JAVA_UNDER_A_JOB, "spark", "sql", tmp_path / "s", query]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=patience_s(120), check=False)
    assert "error: Java, in which Spark runs, is gone: it was killed by SIGKILL\n" in ran.stderr
    assert "help:  run it again" in ran.stderr
    assert (ran.returncode, ran.stdout) == (51, "")
