"""In a plain install, without Java, PySpark and pyarrow, every command runs or says what to install."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import click
import pytest

from seglog.cli.main import commands
from seglog.errors import MissingDependencyError
from seglog.storage.store import MessageStore
from tests.support.command_line.plain_install import PlainInstall

NEEDS_SPARK = {
    "spark audit": ["{store}"],
    "spark reconcile": ["{store}"],
    "spark compact": ["{store}", "--topic", "orders"],
    "spark retain": ["{store}", "--max-age", "orders=1d"],
    "spark archive": ["{store}", "{folder}/archive"],
    "spark sql": ["{store}", "SELECT 1"],
}
NEEDS_PYARROW = {
    "export": ["{store}", "--format", "parquet", "--output", "{folder}/exported.parquet"],
    "import": ["{store}", "{folder}/rows.parquet"],
    "spark reconcile": ["{store}", "--since", "{folder}/earlier"],
}
RUNS = {
    "spark restore": ["{folder}/archive", "{folder}/again"],  # that there is no archive is said first
    "demo": ["--messages", "300", "--dir", "{folder}/demo"],
    "info": ["{store}"],
    "check": ["{store}"],
    "report": ["{store}", "--html", "{folder}/report.html"],
    "put": ["{store}", "orders", "7 pears"],
    "get": ["{store}", "orders"],
    "query": ["{store}", "orders", "k1"],
    "explain": ["{store}", "k1"],
    "tail": ["{store}", "orders"],
    "dump": ["{store}"],
    "inspect segments": ["{store}"],
    "inspect queues": ["{store}"],
    "inspect cq": ["{store}", "orders", "0"],
    "inspect log": ["{store}", "--at", "0"],
    "inspect index": ["{store}"],
    "inspect checkpoint": ["{store}"],
    "inspect config": ["{store}"],
    "inspect id": ["7F00000100002A9F0000000000000000"],
    "inspect du": ["{store}"],
    "verify": ["{store}"],
    "seal": ["{store}"],
    "repair": ["{store}"],
    "undo": ["{store}", "--list"],
    "topic create": ["{store}", "new"],
    "topic alter": ["{store}", "new", "--queues", "3"],
    "topic ls": ["{store}"],
    "topic delete": ["{store}", "new"],
    "group create": ["{store}", "g"],
    "group alter": ["{store}", "g", "--retries", "3", "--apply"],
    "group ls": ["{store}"],
    "offsets reset": ["{store}", "g", "orders", "--to", "0", "--apply"],
    "offsets show": ["{store}"],
    "offsets lag": ["{store}"],
    "offsets log": ["{store}"],
    "offsets local": ["{store}", "{store}"],
    "offsets blame": ["{store}"],
    "offsets diff": ["{store}", "2020-01-01"],
    "offsets restore": ["{store}", "--at", "2020-01-01"],
    "retention plan": ["{store}"],
    "retention run": ["{store}", "--apply"],
    "retention unpark": ["{store}"],
    "dlq ls": ["{store}"],
    "dlq show": ["{store}"],
    "dlq resend": ["{store}"],
    "locks": ["{store}"],
    "skip": ["{store}", "g", "orders", "0", "--to", "1", "--apply"],
    "park": ["{store}", "k1", "--group", "g", "--apply"],
    "tx ls": ["{store}"],
    "tx commit": ["{store}", "k1", "--apply"],
    "tx rollback": ["{store}", "k1", "--apply"],
    "backup": ["{store}", "{folder}/backup"],
    "branch create": ["{store}", "try"],
    "doctor": ["{store}", "--yes"],
    "retention broker": ["{store}"],
    "branch list": ["{store}"],
    "branch diff": ["{store}", "try"],
    "branch drop": ["{store}", "try", "--apply"],
    "group delete": ["{store}", "g", "--apply"],
    "export": ["{store}", "--output", "{folder}/rows.jsonl"],
    "import": ["{folder}/imported", "{folder}/rows.jsonl"],
    "erase": ["{store}", "k1", "--apply", "--yes"],
    "bench": ["{folder}", "--seconds", "0.05", "--space", "64m"],
    "version": [],
}
"""Arguments with which each command is run here, in this order; what one does, a later one may need."""

OF_SERVERS = {"clients": [], "top": ["--once"]}
"""Commands that ask a server, and what they are given besides its address."""

SERVE = """
import json, os, signal, subprocess, sys, threading
from seglog.cli.main import main
ready, say_ready = os.pipe()
def end_it():
    address = os.read(ready, 100).decode().strip()
    code = f"import sys; sys.path[:0] = {sys.path!r}; from seglog.cli.main import main; main()"
    for line in lines:
        command = [sys.executable, "-S", "-c", code, *line, address]
        ran = subprocess.run(command, capture_output=True, text=True)
        print(json.dumps([line, ran.returncode, ran.stderr]), flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
lines = json.loads(sys.argv.pop())
threading.Thread(target=end_it, daemon=True).start()
sys.argv[1:] = ["serve", sys.argv[1], "--port", "0", "--ready-fd", str(say_ready)]
main()
"""
"""Runs the one command that goes on until it is stopped, has others ask it, and stops it."""

SWEEP = """
import json, sys
from click.testing import CliRunner
from seglog.cli.main import commands
for line in json.loads(sys.argv[1]):
    ran = CliRunner().invoke(commands, line, prog_name="seglog")
    print(json.dumps([line, ran.exit_code, ran.stdout, ran.stderr]))
missing = {"pyspark", "pyarrow", "pandas", "py4j"} & set(sys.modules)
assert not missing, missing
"""
"""Runs many commands in one process, and says how each ended."""


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return PlainInstall(tmp_path_factory.mktemp("plain"))


@pytest.fixture
def places(tmp_path):
    """A store, and a folder for all else."""
    with MessageStore.open(tmp_path / "store", segment_size_bytes=1 << 20) as store:
        for number in range(3):
            store.put("orders", b"%d apples" % number, keys=f"k{number}", tags="fruit")
    (tmp_path / "earlier").mkdir()
    for name in ("rows.parquet", "earlier/part.parquet"):
        (tmp_path / name).write_bytes(b"PAR1PAR1")
    return {"store": str(tmp_path / "store"), "folder": str(tmp_path)}


def sweep(plain, lines):
    done = plain.run(SWEEP, json.dumps(lines))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def names_of_commands(command, *names):
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from names_of_commands(command.get_command(context, name), *names, name)
    else:
        yield " ".join(names)


def filled(table, places):
    return [[*name.split(), *(word.format(**places) for word in words)] for name, words in table.items()]


def test_each_command_is_here():
    assert {*RUNS, *NEEDS_SPARK, *OF_SERVERS, "serve"} == set(names_of_commands(commands)), (
        "a new command needs a line above"
    )


def test_every_command_has_help(plain):
    for line, exit_code, stdout, _ in sweep(
        plain, [[*name.split(), "--help"] for name in [*RUNS, *NEEDS_SPARK, *OF_SERVERS, "serve"]]
    ):
        assert (exit_code, stdout[:7]) == (0, "Usage: "), line


def test_every_command_runs(plain, places):
    for line, exit_code, stdout, stderr in sweep(plain, filled(RUNS, places)):
        # 2 would be wrong usage, 70 a bug; what there is nothing to do for is an error of its own class.
        assert exit_code in (0, 1, 10, 13, 24), (line, exit_code, stdout, stderr)
        assert "Traceback" not in stderr


def test_a_store_is_served_and_its_server_asked(plain, places):
    lines = [[name, *words] for name, words in OF_SERVERS.items()]
    done = plain.run(SERVE, places["store"], json.dumps(lines))
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert told == [[line, 0, ""] for line in lines]


def test_what_needs_more_says_in_one_line_how_to_get_it(plain, places):
    for line, exit_code, _, stderr in sweep(plain, filled(NEEDS_SPARK, places)):
        error, advice = stderr.splitlines()
        assert exit_code == MissingDependencyError.exit_code, line
        assert error == (
            "error: Spark needs Java 17 or newer: JAVA_HOME is not set and there is no java on PATH;"
            " the Python package pyspark is not installed"
        )
        assert "set JAVA_HOME to " in advice
        assert advice.endswith("; install PySpark with `pip install 'seglog[spark]'`")
    for line, exit_code, _, stderr in sweep(plain, filled(NEEDS_PYARROW, places)):
        _error, advice = stderr.splitlines()
        assert exit_code == MissingDependencyError.exit_code, (line, stderr)
        assert "pip install 'seglog[" in advice


def test_the_demo_leaves_the_spark_step_out_with_a_line(plain, tmp_path):
    done = plain.seglog("demo", "--messages", "300", "--dir", tmp_path / "demo")
    assert (done.returncode, done.stderr) == (0, "")
    assert "4 steps passed, 1 left out" in done.stdout
    (line,) = [line for line in done.stdout.splitlines() if "left out: " in line]
    assert "Java 17" in line
    assert "pip install 'seglog[spark]'" in line


def test_hints_name_the_package_and_extras_that_there_are():
    root = Path(__file__).resolve().parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    texts = [*(root / "seglog").rglob("*.py"), *(root / "docs").glob("*.md"), root / "README.md"]
    hints = re.findall(r"([\w-]+)\[(\w+)\]'", "".join(path.read_text() for path in texts if path.is_file()))
    named = [(name, extra) for name, extra in hints if name == project["name"]]
    assert {extra for _name, extra in named} == {"arrow", "spark", "parquet", "compression"}
    extras = project["optional-dependencies"]
    for extra, package in (
        ("spark", "pyspark"), ("arrow", "pyarrow"), ("parquet", "pyarrow"), ("compression", "lz4"),
        ("compression", "zstandard"),
    ):  # fmt: skip
        assert any(re.match(rf"{package}\b", one) for one in extras[extra])
