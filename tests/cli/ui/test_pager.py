"""Long text on a terminal goes through a pager; nothing else does, and no pager makes a command fail."""

from __future__ import annotations

import os
import shlex
import signal

import pytest
from click import unstyle

from seglog.errors import Ending
from tests.support.command_line import Seglog
from tests.support.command_line.screen import on_screen
from tests.support.material import golden
from tests.support.rows import every_row

LONG = {
    "dump": ["dump", "STORE"],
    "tail": ["tail", "STORE", "-n", "200"],
    "log": ["log", "show", "STORE", "--at", "0", "--hex"],
    "queues": ["queues", "STORE"],
    "config": ["config", "show", "STORE", "topics.json"],
    "explain": ["explain", "STORE", "gk"],
    "check": ["check", "STORE"],
}
MARK = "[the pager]"


@pytest.fixture
def root(tmp_path):
    return golden.extract("roll", tmp_path)


@pytest.fixture
def pager(tmp_path):
    """A pager that marks what it shows, as a command."""
    script = tmp_path / "my pager"
    script.write_text(f"echo '{MARK}'\nexec cat\n")
    return shlex.join(["/bin/sh", str(script)])


def shown(words, environment=None, columns=100):
    return on_screen(words, columns, environment)


def test_text_that_is_longer_than_the_screen_goes_through_the_pager_whole(root, pager):
    paged = shown(["dump", root], {"SEGLOG_PAGER": pager})
    plain = shown(["dump", root])
    assert (paged.exit_code, plain.exit_code) == (0, 0)
    assert paged.lines[0] == MARK
    assert paged.lines[1:] == plain.lines
    assert len(plain.lines) > 50


def test_colours_and_folded_lines_are_those_of_the_terminal(tmp_path, pager):
    root = golden.extract("d-zeropage-first", tmp_path)
    paged = shown(["dump", root], {"SEGLOG_PAGER": pager}, columns=60)
    plain = shown(["dump", root], columns=60)
    assert paged.lines[1:] == plain.lines
    colours = shown(["--color", "always", "tail", root, "-n", "90"], {"SEGLOG_PAGER": pager})
    assert MARK in colours.lines[0]


def test_text_that_has_room_goes_to_the_screen(root, pager):
    assert MARK not in shown(["tail", root, "-n", "3"], {"SEGLOG_PAGER": pager}).text
    long_lines = shown(["--wide", "tail", root, "-n", "40"], {"SEGLOG_PAGER": pager}, columns=20)
    assert long_lines.lines[0] == MARK


def test_commands_with_long_text_have_it(root, tmp_path, pager):
    of_broker = golden.extract("broker-store", tmp_path)
    environment = {"SEGLOG_PAGER": pager, "LINES": "5"}
    with every_row() as row:
        for name, words in LONG.items():
            with row(name):
                store = of_broker if name in ("config", "explain") else root
                given = [store if word == "STORE" else word for word in words]
                assert shown(given, environment).lines[0] == MARK
                for more in (["--no-pager", *given], [*given, "--json"]):
                    assert MARK not in shown(more, environment).text


def test_seglog_pager_goes_before_pager_and_less_is_the_usual_one(root, pager, tmp_path):
    dump = ["dump", root]
    ours = "/bin/sh -c 'echo 1234'"
    assert shown(dump, {"SEGLOG_PAGER": ours, "PAGER": pager}).lines == ["1234"]
    assert shown(dump, {"SEGLOG_PAGER": None, "PAGER": pager}).lines[0] == MARK
    folder = tmp_path / "bin"
    folder.mkdir()
    less = folder / "less"
    less.write_text('#!/bin/sh\necho less "$@"\ncat\n')
    less.chmod(0o755)
    unset = {"SEGLOG_PAGER": None, "PAGER": None, "PATH": f"{folder}:/usr/bin:/bin"}
    assert shown(dump, unset).lines[0] == "less -FRX"


def test_an_empty_pager_and_cat_are_none(root, pager):
    for name in ("", "cat", "  "):
        plain = shown(["dump", root], {"SEGLOG_PAGER": name, "PAGER": pager})
        assert (plain.exit_code, MARK in plain.text, len(plain.lines) > 50) == (0, False, True), name


def test_a_terminal_without_any_movement_has_none(root, pager):
    assert MARK not in shown(["dump", root], {"SEGLOG_PAGER": pager, "TERM": "dumb"}).text


def test_a_pager_that_cannot_start_is_done_without(root):
    plain = shown(["dump", root]).lines
    for name in ("no-such-pager --x", "/etc/hostname", "'not closed"):
        tried = shown(["dump", root], {"SEGLOG_PAGER": name})
        assert (tried.exit_code, tried.lines) == (0, plain), name


@pytest.mark.parametrize("how", ["exit 0", "read line"])
def test_a_pager_that_is_quit_early_is_no_error(how, root):
    quit_early = shlex.join(["/bin/sh", "-c", how])
    for words in (["dump", root, "--log"], ["tail", root, "-n", "3000"], ["queues", root]):
        ran = shown(words, {"SEGLOG_PAGER": quit_early, "LINES": "4"})
        assert (ran.exit_code, ran.text) == (0, ""), words


def test_what_a_check_found_is_its_exit_code_although_the_pager_was_quit(tmp_path):
    root = golden.extract("d-zeropage-first", tmp_path)
    ran = shown(["check", root], {"SEGLOG_PAGER": "true", "LINES": "5"})
    assert (ran.exit_code, ran.text) == (Ending.LOSS, "")


def test_an_error_is_said_behind_what_the_pager_showed(root, pager):
    ran = shown(["config", "show", root, "nosuch"], {"SEGLOG_PAGER": pager, "LINES": "1"})
    assert ran.exit_code > 2
    assert "error:" in unstyle(ran.lines[-2])


def test_a_pipe_has_none(root, pager, monkeypatch, seglog_process: Seglog):
    monkeypatch.setenv("SEGLOG_PAGER", pager)
    done = seglog_process("dump", root)
    assert done.exit_code == 0
    assert MARK not in done.stdout


def test_following_has_none(root, pager):
    stopped = []

    def stop_behind_all(running, sent):
        if sent.count(b"\n") > 80 and not stopped:
            stopped.append(running.pid)
            os.kill(running.pid, signal.SIGINT)

    follow = ["tail", root, "-n", "90", "-f"]
    ran = on_screen(follow, 100, {"SEGLOG_PAGER": pager}, look=stop_behind_all)
    assert ran.exit_code == Ending.INTERRUPTED
    assert MARK not in ran.text
    assert len(ran.lines) > 80


def test_no_pager_stands_before_the_command(root):
    ran = shown(["dump", root, "--no-pager"])
    assert ran.exit_code == Ending.USAGE
    assert "it stands before the command: `seglog --no-pager ...`" in unstyle(ran.text)


def test_what_a_pager_that_fails_did_not_show_is_shown_without_it(root):
    plain = shown(["dump", root])
    for pager in ("false", "sh -c 'exit 3'", "sh -c 'head -c 9 > /dev/null; exit 1'"):
        done = shown(["dump", root], {"SEGLOG_PAGER": pager})
        assert done.exit_code == 0
        (note,) = (line for line in done.lines if line.startswith("note: the pager"))
        assert shlex.split(pager)[0] in note
        assert [line for line in done.lines if line != note] == plain.lines, pager


def test_a_terminal_that_shows_no_colours_gets_none(tmp_path):
    root = golden.extract("d-zeropage-first", tmp_path)
    done = on_screen(["check", str(root)], 100, {"TERM": "dumb"})
    assert "\x1b" not in done.text
    assert "\x1b" in on_screen(["check", str(root)], 100).text
