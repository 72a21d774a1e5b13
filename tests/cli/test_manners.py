"""One manner of commands: what adds acts at once; what changes or removes is shown, and done with --apply."""

from __future__ import annotations

import ast
import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Final

import click
import pytest
from click import unstyle

from seglog import cli
from seglog.cli.main import commands
from seglog.cli.ui.changing import with_options
from seglog.cli.ui.json_kinds import json_table
from seglog.errors import Ending
from seglog.storage.store import MessageStore
from tests.support.command_line import Seglog
from tests.support.command_line.screen import on_screen
from tests.support.hostile.bases import base
from tests.support.hostile.commands import Subject, command_paths, words_of
from tests.support.material import golden
from tests.support.material.stores import SMALL, SMALL_INDEX, fill
from tests.support.rows import every_row

READS: Final = """
info, check, report, get, query, explain, tail, dump, inspect segments, inspect queues, inspect cq,
inspect log, inspect index, inspect checkpoint, inspect config, inspect id, inspect du, verify, clients,
top, topic ls, group ls, offsets show, offsets lag, offsets local, offsets log, offsets diff,
offsets blame, retention plan, retention broker, dlq ls, dlq show, locks, tx ls, branch list, branch diff,
spark audit, spark reconcile, spark sql, version
"""
ADDS: Final = """
put, import, export, backup, seal, topic create, group create, branch create, spark archive, serve, demo,
bench
"""
CHANGES: Final = """
topic alter, topic delete, group alter, group delete, offsets reset, offsets restore, retention run,
retention unpark, dlq resend, skip, park, tx commit, tx rollback, branch drop, spark compact, spark retain,
spark restore
"""
CHANGES_AND_ASKS: Final = "repair, erase"
OTHERS: Final = {
    "undo": "takes back what a repair did, at once; undo packs are for that",
    "doctor": "shows each step and asks before the next; without a terminal it needs --yes",
}
"""What neither adds nor has to be shown first, and why."""


def _names(table: str) -> set[str]:
    return set(" ".join(table.split()).split(", "))


CHANGING: Final = sorted(_names(CHANGES) | _names(CHANGES_AND_ASKS))
IN_STORES: Final = [name for name in CHANGING if not name.startswith("spark ")]
"""tests/spark has those of Spark."""


def _parameters_of(name: str) -> list[click.Parameter]:
    found: click.Command | None = commands
    for word in name.split():
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), word)
    assert found is not None
    return found.params


def _options_of(name: str) -> dict[str, click.Parameter]:
    return {option: one for one in _parameters_of(name) for option in one.opts}


def _arguments_of(name: str) -> list[click.Argument]:
    return [one for one in dict.fromkeys(_parameters_of(name)) if isinstance(one, click.Argument)]


@pytest.fixture(scope="module")
def everyday():
    return base("everyday")


@pytest.fixture
def subject(everyday, tmp_path):
    root = shutil.copytree(everyday.root, tmp_path / "store", symlinks=True)
    return Subject(
        root, tmp_path, everyday.topic, everyday.group, everyday.key, everyday.message_id, everyday.half_id
    )


def _words(name: str, subject: Subject, seglog: Seglog) -> list[str]:
    if name == "topic delete":  # one without messages, or it is refused
        assert seglog("topic", "create", subject.store, "Fresh").exit_code == 0
        return ["topic", "delete", str(subject.store), "Fresh"]
    if name == "offsets restore":
        changed = seglog("offsets", "log", subject.store, "--json").lines[-1]
        moved = ("offsets", "reset", subject.store, subject.group, "Topic0", "--to", 9, "--apply")
        assert seglog(*moved).exit_code == 0
        return ["offsets", "restore", str(subject.store), "--at", str(changed["timestamp"])]
    if name == "retention run":  # the messages of the other store are of the future
        shutil.rmtree(subject.store)
        with MessageStore.open(subject.store, **SMALL, **SMALL_INDEX) as store:
            fill(store, 40)
        return [*words_of(name, subject)[:3], "--older-than", "0s", "--policy", "allow"]
    if name == "repair":
        file = min((subject.store / "consumequeue" / "Topic0" / "0").iterdir())
        file.write_bytes(b"\xff" * 20 + file.read_bytes()[20:])
    return words_of(name, subject)


def _state(root: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(root)): (path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in sorted(root.rglob("*"))
    }


def test_every_command_has_one_manner():
    tables = [_names(READS), _names(ADDS), set(CHANGING), set(OTHERS)]
    assert set.union(*tables) == set(command_paths())
    assert sum(map(len, tables)) == len(set.union(*tables))


def test_what_changes_has_apply_and_nothing_else_has_it():
    with every_row() as row:
        for name in command_paths():
            with row(name):
                options = _options_of(name)
                assert ("--apply" in options) == (name in CHANGING)
                assert ("--yes" in options) == (name in _names(CHANGES_AND_ASKS) or name == "doctor")
                assert "--dry-run" not in options
                if name in CHANGING:
                    assert options["--apply"].name == "is_applied"


def test_an_option_that_takes_a_fraction_takes_no_nan(seglog: Seglog, tmp_path):
    """NaN is in every range of click."""
    found = 0
    with every_row() as row:
        for name in command_paths():
            for option, one in _options_of(name).items():
                if not isinstance(one.type, click.types.FloatParamType):
                    continue
                found += 1
                with row(name, option):
                    given = [
                        tmp_path if isinstance(arg.type, click.Path) else "127.0.0.1:1"
                        for arg in _arguments_of(name)
                    ]
                    ran = seglog(*name.split(), *given, option, "nan")
                    assert ran.exit_code in {2, 24}, ran.stderr
                    assert list(tmp_path.iterdir()) == []
    assert found


def test_all_that_change_print_the_line_of_a_preview():
    assert sorted(json_table().kinds["preview"].commands) == CHANGING


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("name", IN_STORES)
def test_without_apply_a_store_stays_byte_for_byte_and_what_is_printed_does_it(
    name, form, subject, seglog: Seglog
):
    words = _words(name, subject, seglog) + ["--json"] * (form == "json")
    before = _state(subject.store)
    ran = seglog(*words)
    assert ran.exit_code == (Ending.FINDINGS if name == "repair" else 0), ran.stderr
    assert _state(subject.store) == before
    if form == "json":
        *shown, preview = ran.lines
        assert shown
        assert {line["applied"] for line in ran.lines if "applied" in line} == {False}
        assert preview["kind"] == "preview"
        following = preview["next"]
    else:
        *_, nothing, following = ran.stdout.splitlines()
        assert nothing == "nothing was changed; to do it:"
    program, *typed = shlex.split(following.removeprefix("next: "))
    asks = name in _names(CHANGES_AND_ASKS)
    assert (program, typed) == ("seglog", [*words, "--apply", *["--yes"] * (asks and form == "json")])
    done = seglog(*typed, *["--yes"] * (asks and form == "text"))
    assert done.exit_code == 0, done.stderr
    assert _state(subject.store) != before
    if form == "json":
        assert False not in [line["applied"] for line in done.lines if "applied" in line]


TYPED: Final = re.compile(r"seglog (?!-)[a-z][^`\n]*")
"""A command in the output of a command."""


@pytest.mark.parametrize("name", [*IN_STORES, "check", "doctor", "branch create", "info --verify"])
def test_a_store_that_begins_with_a_dash_can_be_pasted(name, subject, seglog: Seglog, monkeypatch):
    words = ["doctor", str(subject.store)] if name == "doctor" else _words(name, subject, seglog)
    dashed = subject.store.rename(subject.store.with_name("-store"))
    monkeypatch.chdir(dashed.parent)
    if name in {"check", "doctor", "info --verify"}:
        file = min((dashed / "consumequeue" / "Topic0" / "0").iterdir())
        file.write_bytes(b"\xff" * 20 + file.read_bytes()[20:])
    words = ["./-store" if word == str(subject.store) else word for word in words]
    ran = seglog(*words)
    printed = TYPED.findall(ran.stdout + ran.stderr)
    assert printed
    more = ["--yes"] if name in _names(CHANGES_AND_ASKS) else []
    done = seglog(*words, "--apply", *more) if name in IN_STORES else ran
    for command in [*printed, *TYPED.findall(done.stdout + done.stderr)]:
        assert "-store" not in shlex.split(command)


@pytest.mark.parametrize("name", sorted(_names(CHANGES_AND_ASKS)))
def test_a_question_without_a_terminal_ends_with_2_and_names_yes(name, subject, seglog: Seglog):
    words = [*_words(name, subject, seglog), "--apply"]
    before = _state(subject.store)
    for answer in (b"", b"store\n"):
        refused = seglog(*words, stdin=answer)
        assert (refused.exit_code, refused.stdout) == (Ending.USAGE, "")
        assert "standard input is no terminal; --yes asks nothing" in refused.stderr
    assert seglog(*words, "--json").exit_code == Ending.USAGE
    assert "--yes goes with --apply" in seglog(*words[:-1], "--yes").stderr
    assert _state(subject.store) == before


@pytest.mark.parametrize("name", sorted(_names(CHANGES_AND_ASKS)))
def test_on_a_terminal_the_name_is_asked_for(name, subject, seglog: Seglog):
    words = [*_words(name, subject, seglog), "--apply"]
    before = _state(subject.store)
    other = on_screen(words, 200, stdin=b"other\n")
    assert other.exit_code != 0
    assert "was changed" in unstyle(other.text) or "was erased" in unstyle(other.text)
    assert _state(subject.store) == before
    assert on_screen(words, 200, stdin=b"store\n").exit_code == 0
    assert _state(subject.store) != before


def test_only_one_module_asks_on_the_terminal():
    asking = set()
    for path in Path(cli.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in {"prompt", "confirm", "getchar", "pause"}:
                if isinstance(node.value, ast.Name) and node.value.id == "click":
                    asking.add(path.name)
            elif isinstance(node, ast.Name) and node.id == "input":
                asking.add(path.name)
    assert asking == {"confirm.py"}


@pytest.mark.parametrize(
    ("words", "path", "with_apply"),
    [
        (["skip", "s", "g"], "seglog skip", ["skip", "s", "g", "--apply"]),
        (["skip", "--", "s", "-g"], "seglog skip", ["skip", "--apply", "--", "s", "-g"]),
        (["--wide", "topic", "delete", "--", "s", "-T"], "seglog topic delete",
         ["--wide", "topic", "delete", "--apply", "--", "s", "-T"]),
    ],
)  # fmt: skip
def test_apply_goes_where_it_is_an_option(words, path, with_apply):
    assert with_options(words, path, ["--apply"]) == with_apply


def test_the_command_that_is_printed_is_one_that_a_shell_takes(seglog: Seglog, tmp_path):
    root = golden.extract("broker-store", tmp_path).rename(tmp_path / "it's $HOME;\n")
    shown = seglog("skip", root, "cg1", "LiveTopic", 0, "--to", 18, "--json")
    following = json.loads(shown.stdout.splitlines()[-1])["next"]
    assert "$'" in following
    assert "\n" not in following
