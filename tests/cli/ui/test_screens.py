"""What commands show on terminals of 60, 80 and 200 columns: no line is longer, and nothing is cut."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import pytest
from click import unstyle
from rich.cells import cell_len

from tests.support.command_line import Seglog
from tests.support.command_line.screen import on_screen
from tests.support.material import golden

WORK = {
    "check": ("d-trunclast", ["check", "STORE"]),
    "check, a hole": ("d-zeropage-first", ["check", "STORE"]),
    "repair": ("d-zeropage-first", ["repair", "STORE"]),
    "config": ("broker-store", ["config", "show", "STORE"]),
    "log": ("roll", ["log", "show", "STORE", "--at", "0"]),
    "log, bytes": ("roll", ["log", "show", "STORE", "--at", "0", "--hex"]),
    "queues": ("broker-store", ["queues", "STORE"]),
    "dlq": ("broker-store", ["dlq", "ls", "STORE"]),
    "retention": ("roll", ["retention", "plan", "STORE", "--older-than", "0s"]),
    "explain": ("tx", ["explain", "STORE", "TXUNIQ1"]),
    "info": ("roll", ["info", "STORE"]),
    "topics": ("real-conf", ["topic", "ls", "STORE"]),
}
TAKEN = re.compile(r"read in [0-9.]+ s, [0-9.]+ \w+/s")
"""How long it took, and so a rate."""
TYPED = re.compile(r"seglog repair /|^ *(to do: )?`seglog [^`]*`[:;,.]?$")
"""A command to type is one line, to be copied."""


def _words(name: str, tmp_path) -> list[str]:
    store, words = WORK[name]
    path = golden.extract(store, tmp_path)
    return [str(path) if word == "STORE" else word for word in words]


def _characters(lines: Sequence[str]) -> Counter[str]:
    """Returns how often each character is there, but blanks, digits and what says how long it took."""
    text = TAKEN.sub("", " ".join(" ".join(lines).split()))
    return Counter(char for char in text if not char.isspace() and not char.isdigit())


@pytest.mark.parametrize("name", WORK)
def test_no_line_is_longer_than_the_terminal_and_nothing_is_cut(name, seglog_process: Seglog, tmp_path):
    words = _words(name, tmp_path)
    piped = seglog_process(*words)
    whole = piped.stdout.splitlines()
    for columns in (60, 80, 200):
        shown = on_screen(words, columns)
        lines = [unstyle(line) for line in shown.lines]
        assert shown.exit_code == piped.exit_code
        assert [line for line in lines if cell_len(line) > columns and not TYPED.search(line)] == []
        assert _characters(lines) == _characters(whole), columns


@pytest.mark.parametrize(
    ("words", "environment", "is_coloured"),
    [
        ([], {}, True),
        ([], {"NO_COLOR": "1"}, False),
        (["--color", "never"], {}, False),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
    ],
)
def test_colours_are_left_out_where_they_are_not_wanted(words, environment, is_coloured, tmp_path):
    shown = on_screen([*words, *_words("check", tmp_path)], 80, environment)
    assert ("\x1b[" in shown.text) == is_coloured


def test_a_pipe_is_coloured_if_that_is_asked_for(seglog_process: Seglog, tmp_path):
    assert "\x1b[" in seglog_process("--color", "always", *_words("check", tmp_path)).stdout


def test_wide_folds_no_line(seglog_process: Seglog, tmp_path):
    words = _words("check", tmp_path)
    piped = seglog_process(*words)
    lines = [unstyle(line) for line in on_screen(["--wide", *words], 60).lines]
    assert len(lines) == len(piped.stdout.splitlines())
    assert max(map(len, lines)) > 80


@pytest.mark.parametrize("option", ["--wide", "--color"])
def test_an_option_of_all_commands_that_stands_behind_one_is_explained(option, seglog_process: Seglog):
    done = seglog_process("check", option, "x")
    assert done.exit_code == 2
    assert f"it stands before the command: `seglog {option}" in done.stderr


@pytest.mark.parametrize("command", ["repair", "skip", "retention plan"])
@pytest.mark.parametrize("option", ["--dry-run", "--preview"])
def test_who_asks_for_a_preview_is_told_where_there_is_one(command, option, seglog: Seglog):
    told = seglog(*command.split(), option, "x")
    assert told.exit_code == 2
    has_apply = "--apply" in seglog(*command.split(), "--help").stdout
    assert ("without --apply it shows what it would do, and changes nothing" in told.stderr) is has_apply
    assert has_apply is (command != "retention plan")


@pytest.mark.parametrize("group", ["offsets", "dlq", "retention", "tx", "branch", "topic", "group"])
def test_a_list_of_commands_has_whole_sentences(group, seglog: Seglog):
    shown = seglog(*group.split(), "--help").stdout
    commands = shown.partition("\nCommands:\n")[2]
    assert commands
    assert "..." not in commands
