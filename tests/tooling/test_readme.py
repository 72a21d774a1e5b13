"""What the README shows works: its Python runs, its commands run, its make targets exist.

Python blocks run each in a process and folder of its own, and once more one after another in one folder;
those that are tests (`python test`) with pytest.
Commands of `sh` and `console` blocks of a
section run in README order in one folder, so that one may read what an earlier one wrote. A block whose fence
says more than the language, such as `sh not-tested`, is left alone. The reader is someone with a
broker: `~/store`, where RocketMQ keeps its files unless told otherwise, is a real store.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.machine.patience import patience_s
from tests.support.machine.spark_here import need_spark
from tests.support.material.golden import extract

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
COMMANDS = ("seglog", "make")
PROGRAM_TIMEOUT_S = 120


class Block(NamedTuple):
    """A fenced block: its language, its text, the line where the text starts (from 1)."""

    language: str
    text: str
    line: int


def fenced_blocks(markdown: str) -> list[Block]:
    """Returns the fenced blocks of ``markdown`` that name a language."""
    blocks = []
    fence = re.compile(r"^(`{3,}|~{3,})([^\n`]*)\n(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)
    for match in fence.finditer(markdown):
        line = markdown.count("\n", 0, match.start(3)) + 1
        blocks.append(Block(match[2].strip(), match[3], line))
    return [block for block in blocks if block.language]


def commands_of(block: Block) -> list[str]:
    """Returns the commands of a block: in `console` those after a prompt, in `sh` every line."""
    lines = re.sub(r"\s*\\\n\s*", " ", block.text).splitlines()
    if block.language == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    commands = [re.sub(r"(^|\s)#.*", "", line).strip() for line in lines]
    return [command for command in commands if command]


def readme() -> str:
    """Returns the README, or nothing when it is missing; a test of its own says so."""
    return README.read_text() if README.exists() else ""


def blocks_of(*languages: str) -> list[Block]:
    return [block for block in fenced_blocks(readme()) if block.language in languages]


def shell_commands() -> list[tuple[Block, str]]:
    return [(block, command) for block in blocks_of("sh", "console") for command in commands_of(block)]


def seglog_commands() -> dict[str, list[tuple[int, str]]]:
    """Returns our commands by the section that shows them, with their lines."""
    headings = [
        (number, line[3:]) for number, line in enumerate(readme().splitlines(), 1) if line[:3] == "## "
    ]
    found: dict[str, list[tuple[int, str]]] = {}
    for block, command in shell_commands():
        if command.startswith("seglog"):
            section = next(title for line, title in reversed(headings) if line < block.line)
            found.setdefault(section, []).append((block.line, command))
    return found


def dialogue_parts() -> list[tuple[int, str]]:
    """Returns what `console dialogue` blocks show, part by part between lines of `...`, with their lines."""
    blocks = blocks_of("console dialogue")
    return [(block.line, part.strip("\n")) for block in blocks for part in block.text.split("\n...\n")]


@pytest.mark.parametrize(("line", "part"), dialogue_parts())
def test_what_a_dialogue_shows_was_said(line, part):
    said = [file.read_text() for file in (ROOT / "tests" / "dialogues").glob("*.txt")]
    assert any(f"{part}\n" in text for text in said), f"README line {line}"


def test_the_readme_shows_dialogues():
    assert len(blocks_of("console dialogue")) >= 3


@pytest.fixture
def home(tmp_path):
    """Returns the home and working folder of the reader, with the store of a broker in it."""
    extract("roll", tmp_path).rename(tmp_path / "store")
    return tmp_path


def environment(home: Path) -> dict[str, str]:
    """Returns the environment of a reader who has just installed: our command is found first."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return kept | {"HOME": str(home), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"}


def check(arguments: list[str] | str, cwd: Path, where: str) -> None:
    """Runs what the README shows; a failure quotes the README's line."""
    done = subprocess.run(
        arguments,
        check=False,
        cwd=cwd,
        env=environment(cwd),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=patience_s(PROGRAM_TIMEOUT_S),
        shell=isinstance(arguments, str),
    )
    assert done.returncode == 0, f"{where} ended with {done.returncode}:\n{done.stdout}{done.stderr}"


def test_readme_shows_python_and_both_commands():
    assert README.exists(), "README.md is missing"
    assert blocks_of("python"), "README.md has no ```python block"
    shown = {command for _, command in shell_commands()}
    assert {"make demo", "make test"} <= shown, "README.md must show `make demo` and `make test`"


def test_readme_shows_only_commands_that_are_tested_here():
    known = ("git clone", "cd", "pip install", *COMMANDS)
    strange = [
        f"README.md:{block.line}: {line}" for block, line in shell_commands() if not line.startswith(known)
    ]
    assert not strange, "neither run nor known here; mark the block, or teach this test"


@pytest.mark.parametrize("block", blocks_of("python"), ids=lambda block: f"line {block.line}")
def test_python_of_the_readme_runs(block, home):
    if "seglog.spark" in block.text:
        need_spark()
    (home / "example.py").write_text("\n" * (block.line - 1) + block.text)
    check([sys.executable, "example.py"], home, f"README.md:{block.line}")


def test_python_of_the_readme_runs_in_the_order_of_reading_in_one_folder(home):
    for block in blocks_of("python"):
        if "seglog.spark" not in block.text:  # it reads the broker's store and makes none
            (home / "example.py").write_text("\n" * (block.line - 1) + block.text)
            check([sys.executable, "example.py"], home, f"README.md:{block.line}")


@pytest.mark.parametrize("block", blocks_of("python test"), ids=lambda block: f"line {block.line}")
def test_tests_of_the_readme_pass(block, home, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # an installed seglog would bring it once more
    (home / "test_example.py").write_text("\n" * (block.line - 1) + block.text)
    command = [sys.executable, "-m", "pytest", "-p", "seglog.pytest_plugin", "test_example.py"]
    check(command, home, f"README.md:{block.line}")


def test_the_readme_shows_a_test():
    assert len(blocks_of("python test")) == 1


@pytest.mark.parametrize(
    "command", [command for _, command in shell_commands() if command.startswith("make")] or ["make help"]
)
def test_make_targets_of_the_readme_exist(command):
    check(["make", "--dry-run", *shlex.split(command)[1:]], ROOT, command)


@pytest.mark.parametrize("section", seglog_commands())
def test_seglog_commands_of_the_readme_run(section, home):
    if any(command.startswith("seglog spark") for _line, command in seglog_commands()[section]):
        need_spark()
    for line, command in seglog_commands()[section]:
        check(command, home, f"README.md:{line}, {section}: {command}")


def test_blocks_are_found_with_language_and_line():
    text = "a\n```sh\nmake demo  # one\nmake \\\n  test\n```\n```\nplain\n```\n~~~python\nx = 1\n~~~\n"
    assert fenced_blocks(text) == [
        Block("sh", "make demo  # one\nmake \\\n  test\n", 3),
        Block("python", "x = 1\n", 11),
    ]
    assert commands_of(fenced_blocks(text)[0]) == ["make demo", "make test"]


def test_console_output_is_no_command():
    block = Block("console", "$ seglog version\nseglog 0.1.0\n", 1)
    assert commands_of(block) == ["seglog version"]
