"""Long text on a terminal goes through a pager; nothing else does, and no pager makes a command fail."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys

import pytest
from click import unstyle

from seglog.errors import Ending
from tests.support.machine.screen import on_screen
from tests.support.material import golden

LONG = {
    "dump": ["dump", "STORE"],
    "tail": ["tail", "STORE", "-n", "200"],
    "log": ["log", "show", "STORE", "--at", "0", "--hex"],
    "queues": ["queues", "STORE"],
    "config": ["config", "show", "STORE", "topics.json"],
    "explain": ["explain", "STORE", "k1"],
    "check": ["check", "STORE"],
}
MARK = "[the pager]"


@pytest.fixture
def root(tmp_path):
    return golden.extract("roll", tmp_path)


@pytest.fixture
def pager(tmp_path):
    """A pager that marks what it shows, as a command."""
    script = tmp_path / "my pager.py"
    script.write_text(f"import sys\nprint({MARK!r})\nsys.stdout.write(sys.stdin.read())\n")
    return shlex.join([sys.executable, str(script)])


def shown(command_line, words, environment=None, columns=100):
    return on_screen([*command_line, *map(str, words)], columns, environment)


def test_text_that_is_longer_than_the_screen_goes_through_the_pager_whole(command_line, root, pager):
    paged = shown(command_line, ["dump", root], {"SEGLOG_PAGER": pager})
    plain = shown(command_line, ["dump", root])
    assert (paged.exit_code, plain.exit_code) == (0, 0)
    assert paged.lines[0] == MARK
    assert paged.lines[1:] == plain.lines
    assert len(plain.lines) > 50


def test_colours_and_folded_lines_are_those_of_the_terminal(command_line, tmp_path, pager):
    root = golden.extract("d-zeropage-first", tmp_path)
    paged = shown(command_line, ["dump", root], {"SEGLOG_PAGER": pager}, columns=60)
    plain = shown(command_line, ["dump", root], columns=60)
    assert paged.lines[1:] == plain.lines
    colours = shown(command_line, ["--color", "always", "tail", root, "-n", "90"], {"SEGLOG_PAGER": pager})
    assert MARK in colours.lines[0]


def test_text_that_has_room_goes_to_the_screen(command_line, root, pager):
    assert MARK not in shown(command_line, ["tail", root, "-n", "3"], {"SEGLOG_PAGER": pager}).text
    long_lines = shown(
        command_line, ["--wide", "tail", root, "-n", "40"], {"SEGLOG_PAGER": pager}, columns=20
    )
    assert long_lines.lines[0] == MARK


@pytest.mark.parametrize("name", LONG)
def test_commands_with_long_text_have_it(name, command_line, tmp_path, pager):
    store = golden.extract("broker-store" if name in ("config", "explain") else "roll", tmp_path)
    words = [str(store) if word == "STORE" else word for word in LONG[name]]
    if name == "explain":
        words[-1] = "gk"
    environment = {"SEGLOG_PAGER": pager, "LINES": "5"}
    assert shown(command_line, words, environment).lines[0] == MARK
    for more in (["--no-pager", *words], [*words, "--json"]):
        assert MARK not in shown(command_line, more, environment).text


def test_seglog_pager_goes_before_pager_and_less_is_the_usual_one(command_line, root, pager, tmp_path):
    dump = ["dump", root]
    unset = [*shlex.split("env -u SEGLOG_PAGER -u PAGER"), *command_line]
    ours = f"{sys.executable} -c 'print(1234)'"
    assert shown(command_line, dump, {"SEGLOG_PAGER": ours, "PAGER": pager}).lines == ["1234"]
    assert shown([*unset[:3], *command_line], dump, {"PAGER": pager}).lines[0] == MARK
    folder = tmp_path / "bin"
    folder.mkdir()
    less = folder / "less"
    less.write_text('#!/bin/sh\necho less "$@"\ncat\n')
    less.chmod(0o755)
    path = {"PATH": f"{folder}:/usr/bin:/bin"}
    assert shown(unset, dump, path).lines[0] == "less -FRX"


@pytest.mark.parametrize("name", ["", "cat", "  "])
def test_an_empty_pager_and_cat_are_none(name, command_line, root, pager):
    plain = shown(command_line, ["dump", root], {"SEGLOG_PAGER": name, "PAGER": pager})
    assert (plain.exit_code, MARK in plain.text, len(plain.lines) > 50) == (0, False, True)


def test_a_terminal_without_any_movement_has_none(command_line, root, pager):
    assert MARK not in shown(command_line, ["dump", root], {"SEGLOG_PAGER": pager, "TERM": "dumb"}).text


@pytest.mark.parametrize("name", ["no-such-pager --x", "/etc/hostname", "'not closed"])
def test_a_pager_that_cannot_start_is_done_without(name, command_line, root):
    tried = shown(command_line, ["dump", root], {"SEGLOG_PAGER": name})
    assert (tried.exit_code, tried.lines) == (0, shown(command_line, ["dump", root]).lines)


@pytest.mark.parametrize("how", ["raise SystemExit", "sys.stdin.readline()"])
def test_a_pager_that_is_quit_early_is_no_error(how, command_line, tmp_path):
    root = golden.extract("roll", tmp_path)
    quit_early = shlex.join([sys.executable, "-c", f"import sys\n{how}"])
    for words in (["dump", root, "--log"], ["tail", root, "-n", "3000"], ["queues", root]):
        ran = shown(command_line, words, {"SEGLOG_PAGER": quit_early, "LINES": "4"})
        assert (ran.exit_code, ran.text) == (0, ""), words


def test_what_a_check_found_is_its_exit_code_although_the_pager_was_quit(command_line, tmp_path):
    root = golden.extract("d-zeropage-first", tmp_path)
    quit_early = shlex.join([sys.executable, "-c", "pass"])
    ran = shown(command_line, ["check", root], {"SEGLOG_PAGER": quit_early, "LINES": "5"})
    assert (ran.exit_code, ran.text) == (Ending.LOSS, "")


def test_an_error_is_said_behind_what_the_pager_showed(command_line, root, pager):
    ran = shown(command_line, ["config", "show", root, "nosuch"], {"SEGLOG_PAGER": pager, "LINES": "1"})
    assert ran.exit_code > 2
    assert "error:" in unstyle(ran.lines[-2])


def test_a_pipe_has_none(command_line, root, pager, monkeypatch):
    monkeypatch.setenv("SEGLOG_PAGER", pager)
    done = subprocess.run([*command_line, "dump", str(root)], capture_output=True, check=True)
    assert MARK not in done.stdout.decode()


def test_following_has_none(command_line, root, pager):
    timeout = shutil.which("timeout")
    if timeout is None:
        pytest.skip("no timeout(1) here")
    follow = ["tail", root, "-n", "90", "-f"]
    ran = on_screen(
        [timeout, "-s", "INT", "5", *command_line, *map(str, follow)], 100, {"SEGLOG_PAGER": pager}
    )
    assert MARK not in ran.text
    assert len(ran.lines) > 80


def test_no_pager_stands_before_the_command(command_line, root):
    ran = shown(command_line, ["dump", root, "--no-pager"])
    assert ran.exit_code == Ending.USAGE
    assert "it stands before the command: `seglog --no-pager ...`" in unstyle(ran.text)


@pytest.mark.parametrize("pager", ["false", "sh -c 'exit 3'", "sh -c 'head -c 9 > /dev/null; exit 1'"])
def test_what_a_pager_that_fails_did_not_show_is_shown_without_it(command_line, root, pager):
    done = shown(command_line, ["dump", root], {"SEGLOG_PAGER": pager})
    plain = shown(command_line, ["dump", root])
    assert done.exit_code == 0
    (note,) = (line for line in done.lines if line.startswith("note: the pager"))
    assert shlex.split(pager)[0] in note
    assert [line for line in done.lines if line != note] == plain.lines


def test_a_terminal_that_shows_no_colours_gets_none(command_line, tmp_path):
    root = golden.extract("d-zeropage-first", tmp_path)
    done = on_screen([*command_line, "check", str(root)], 100, {"TERM": "dumb"})
    assert "\x1b" not in done.text
    assert "\x1b" in on_screen([*command_line, "check", str(root)], 100).text
