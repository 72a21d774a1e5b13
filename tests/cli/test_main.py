"""The entry: quick where it must be, and one form for every failure."""

from __future__ import annotations

import errno
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import click
import pytest

from seglog import MessageStore
from seglog.cli.main import COMMANDS, SECTIONS
from seglog.cli.read.inspect import PARTS
from seglog.cli.ui.lazy_group import LazyGroup
from seglog.errors import (
    Ending,
    FullError,
    NotFoundError,
    OutputError,
    ReadOnlyError,
    StoreError,
    error_classes,
)
from seglog.storage.files.os_errors import explain_os_error
from seglog.storage.kernels import KERNELS
from tests.support.command_line import Seglog
from tests.support.command_line.loaded import CLOSED, loaded
from tests.support.machine.patience import patience_s, wait_for_end
from tests.support.material import golden
from tests.support.narrow import not_none
from tests.support.rows import every_row


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["version"], ["version", "--json"]])
def test_help_and_version_load_neither_numpy_nor_rich(arguments, command_line: list[str]):
    code = (
        "import sys; from seglog.cli.main import commands\n"
        f"try: commands({arguments!r})\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'rich', 'seglog.storage.store'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([command_line[0], "-c", code], capture_output=True, check=True)
    assert done.stderr.decode().strip() == "[]"


@pytest.mark.parametrize(("homes", "summaries"), [({}, {"ages": "Show ages."}), ({"ages": "x.ages"}, {})])
def test_a_command_without_a_module_or_a_summary_is_refused_when_the_table_is_read(homes, summaries):
    with pytest.raises(ValueError, match="commands with a module or a summary only: ages"):
        LazyGroup(homes=homes, summaries=summaries)


def test_help_lists_every_command_and_every_command_has_help(seglog: Seglog):
    shown = seglog("--help")
    assert shown.exit_code == 0
    for name, summary in COMMANDS.items():
        assert name in shown.stdout
        assert summary in shown.stdout
        assert "Usage: " in seglog(name, "--help").stdout


@pytest.mark.parametrize("name", PARTS)
def test_what_inspect_shows_has_its_old_name_too(name: str, seglog: Seglog, tmp_path):
    root = golden.extract("broker-store", tmp_path)
    words: dict[str, list[Path | str | int]] = {
        "cq": [root, "LiveTopic", 0],
        "log": [root, "--at", 0],
        "id": ["7F00000100002A9F" + "0" * 16],
    }
    old = {"cq": "show", "log": "show", "index": "show", "config": "show", "id": "decode"}
    given = words.get(name, [root])
    shown = seglog("inspect", name, *given)
    assert shown.exit_code == 0
    assert shown.stdout == seglog(name, *filter(None, [old.get(name)]), *given).stdout
    assert name not in COMMANDS


def test_every_command_comes_once_under_a_heading_of_the_help():
    assert sorted(name for names in SECTIONS.values() for name in names.split()) == sorted(COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["lag"], "Did you mean 'offsets lag'?"),
        (["offset"], "Did you mean 'offsets'?"),
        (["dq", "ls"], "Did you mean 'dlq'?"),
        (["offsets", "restor"], "Did you mean 'restore' or 'reset'?"),
        (["spark", "audti"], "Did you mean 'audit'?"),
    ],
)
def test_a_command_that_is_not_there_names_the_one_that_was_meant(seglog: Seglog, arguments, meant):
    wrong = next(argument for argument in arguments if argument not in COMMANDS)
    said = seglog(*arguments)
    assert said.exit_code == 2
    assert said.stderr.splitlines()[0] == f"error: No such command {wrong!r}. {meant}"


def test_a_command_that_is_like_none_names_none(seglog: Seglog):
    assert seglog("xyzzy").stderr.splitlines()[0] == "error: No such command 'xyzzy'."


def test_the_package_runs_as_a_module(command_line: list[str]):
    done = subprocess.run([command_line[0], "-m", "seglog", "--version"], capture_output=True, check=True)
    assert done.stdout.decode().startswith("version ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_as_the_page_of_the_commands_says(command_line: list[str], shell):
    environment = {**os.environ, "_SEGLOG_COMPLETE": f"{shell}_source"}
    done = subprocess.run(command_line, capture_output=True, check=True, env=environment)
    assert b"_SEGLOG_COMPLETE=%s_complete" % shell.encode() in done.stdout
    assert f"{shell}_source" in (Path(__file__).parents[2] / "docs" / "cli.md").read_text()


def test_version_says_which_kernels_run(seglog: Seglog):
    (facts,) = seglog("version", "--json").lines
    assert facts["kernels"] == KERNELS
    assert facts["numpy"]
    assert set(facts) >= {"version", "python", "platform", "crc32c", "pyspark", "java"}
    assert "kernels" in seglog("version").stdout


def test_the_option_version_shows_the_first_line_of_the_command(seglog: Seglog):
    shown = seglog("--version")
    assert (shown.exit_code, shown.stdout) == (0, seglog("version").stdout.splitlines(keepends=True)[0])


@pytest.mark.parametrize("output", ["> /dev/full", ">&-"])
def test_an_output_that_cannot_be_written_is_no_error_of_the_store(output, command_line: list[str], tmp_path):
    store = tmp_path / "s"
    words = shlex.join([*command_line, "put", str(store), "T", "hi"])
    done = subprocess.run(["/bin/sh", "-c", f"{words} {output}"], capture_output=True, check=False)
    assert done.returncode == OutputError.exit_code
    said = done.stderr.decode()
    assert "standard output could not be written" in said
    assert "stored are stored" in said
    assert "Traceback" not in said
    with MessageStore.open(store, read_only=True) as opened:
        assert [message.body for message in opened.get("T", 0, 0)] == [b"hi"]


@pytest.fixture
def without_room() -> Iterator[dict[str, int]]:
    """Files to which nothing can be written."""
    full = os.open("/dev/full", os.O_WRONLY)
    yield {"full": full, "closed": CLOSED}
    os.close(full)


def test_no_command_ends_with_a_traceback_for_want_of_an_output(tmp_path, without_room):
    with MessageStore.open(tmp_path / "s", segment_size_bytes=1 << 20, queue_file_size_bytes=20_000) as store:
        store.put("T", b"x")
    lines = ["check", "check --json", "info", "info --json", "export -o -", "repair", "get --json T"]
    with every_row() as row:
        for line, (what, output) in product(lines, without_room.items()):
            with row(line, what):
                name, *rest = line.split()
                at = len(rest) - 1 if name == "get" else 0
                done = loaded().run(name, *rest[:at], tmp_path / "s", *rest[at:], stdout=output)
                assert done.returncode == OutputError.exit_code, done.stderr
                assert b"Traceback" not in done.stderr
                assert b"free space" not in done.stderr


def test_where_no_error_can_be_written_the_exit_code_is_that_of_the_error(without_room):
    ends = {"check nothing-there": 13, "check --json nothing-there": 13, "check a b": 2, "nothing": 2}
    with every_row() as row:
        for (line, exit_code), (what, errors) in product(
            ends.items(), [*without_room.items(), ("pipe", None)]
        ):
            with row(line, what):
                assert loaded().run(*line.split(), stderr=errors).returncode == exit_code


@pytest.mark.parametrize("arguments", ["--help", "--version", "check --help"])
def test_help_whose_reader_is_gone_ends_as_other_output_does(arguments, command_line: list[str]):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*command_line, *arguments.split()], stdout=writing, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (Ending.NO_READER, b"")


@pytest.mark.parametrize("arguments", ["--help", "-h", "--version", "check --help"])
@pytest.mark.parametrize("output", ["> /dev/full", ">&-"])
def test_help_for_want_of_an_output_ends_as_a_command_does(arguments, output, command_line: list[str]):
    words = f"{shlex.join(command_line)} {arguments} {output}"
    done = subprocess.run(["/bin/sh", "-c", words], capture_output=True, check=False)
    assert done.returncode == OutputError.exit_code
    assert done.stderr.startswith(b"error: standard output could not be written")


def test_version_finds_the_java_that_spark_would_start(seglog: Seglog, tmp_path, monkeypatch):
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch(mode=0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert seglog("version", "--json").lines[0]["java"] == str(java)
    (tmp_path / "jdk" / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="21.0.2"\n')
    assert seglog("version", "--json").lines[0]["java"] == f"21.0.2 ({java})"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert seglog("version", "--json").lines[0]["java"] is None


def test_wrong_usage_ends_with_2_and_says_where_help_is(seglog: Seglog):
    for arguments in (["nosuch"], ["info"], ["info", "--nosuch", "x"], ["get", "x", "t", "--count", "many"]):
        failed = seglog(*arguments)
        assert failed.exit_code == 2
        assert failed.stderr.startswith("error: ")
        assert "--help`" in failed.stderr


def test_with_json_an_error_is_one_object_on_stderr(seglog: Seglog, tmp_path):
    failed = seglog("info", tmp_path / "nothing", "--json")
    assert failed.exit_code == NotFoundError.exit_code
    assert failed.stdout == ""
    fields = json.loads(failed.stderr)
    assert fields["kind"] == "NotFoundError"
    assert fields["exitCode"] == 13
    assert fields["error"]
    assert fields["help"]


def test_json_behind_two_dashes_is_a_body_and_no_option(seglog: Seglog, tmp_path):
    assert seglog("put", tmp_path / "s", "t", "--", "--json").exit_code == 0
    (message, _result) = seglog("get", tmp_path / "s", "t", "--json").lines
    assert message["body"] == "--json"


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, FullError),
        (errno.EROFS, ReadOnlyError),
        (errno.EACCES, StoreError),
        (errno.ENOENT, NotFoundError),
        (errno.EMFILE, StoreError),
        (errno.ENOTTY, StoreError),
    ],
)
def test_an_error_of_the_operating_system_gets_a_sentence_and_advice(number, kind):
    explained = explain_os_error(OSError(number, os.strerror(number), "/some/store"))
    assert type(explained) is kind
    assert str(explained).startswith("/some/store: ")
    assert explained.help


def test_exit_codes_of_the_entry_collide_with_no_error_class():
    taken = {kind.exit_code for kind in error_classes()}
    assert click.UsageError.exit_code == Ending.USAGE
    assert not taken & set(Ending)


def test_a_bug_is_reported_with_its_traceback(seglog: Seglog, monkeypatch):
    monkeypatch.setattr("seglog.cli.ui.version.package_version", lambda _name: 1 // 0)
    failed = seglog("version")
    assert failed.exit_code == Ending.BUG
    assert "Traceback" in failed.stderr
    assert "error: ZeroDivisionError" in failed.stderr


def test_a_reader_that_goes_away_is_no_error_worth_a_word(
    command_line: list[str], seglog: Seglog, tmp_path, start_child
):
    lines = b"".join(b"%d\n" % number for number in range(5000))
    seglog("put", tmp_path / "s", "t", "--lines", stdin=lines)
    dump = start_child(
        [*command_line, "dump", tmp_path / "s", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert not_none(dump.stdout).readline()
    not_none(dump.stdout).close()
    assert not_none(dump.stderr).read() == b""
    not_none(dump.stderr).close()
    assert wait_for_end(dump) == Ending.NO_READER


def test_ctrl_c_ends_following_quietly_with_130(
    command_line: list[str], seglog: Seglog, tmp_path, start_child
):
    seglog("put", tmp_path / "s", "t", "first")
    tail = start_child(
        [*command_line, "tail", tmp_path / "s", "-f", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert json.loads(not_none(tail.stdout).readline())["body"] == "first"
    tail.send_signal(signal.SIGINT)
    _stdout, stderr = tail.communicate(timeout=patience_s(30))
    assert tail.returncode == Ending.INTERRUPTED
    assert stderr == b""


@pytest.mark.parametrize("module", ["click.types", "click.core", "seglog.errors", "numpy.linalg", "numpy"])
def test_ctrl_c_while_modules_are_loaded_ends_a_command_without_a_traceback(
    module: str, tmp_path, start_child
):
    loading = start_child(
        [sys.executable, "-X", "importtime", "-m", "seglog", "info", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in not_none(loading.stderr):
        if line.rstrip().endswith(f" {module}"):
            loading.send_signal(signal.SIGINT)
            break
    _stdout, stderr = loading.communicate(timeout=patience_s(30))
    assert loading.returncode in (-signal.SIGINT, Ending.INTERRUPTED)
    assert "Traceback" not in stderr


def test_a_command_with_unknown_kernels_says_so(command_line: list[str]):
    done = subprocess.run(
        [*command_line, "version"], env=os.environ | {"SEGLOG_KERNEL": "x"}, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (24, b"")
    assert b"unset SEGLOG_KERNEL" in done.stderr
