"""What the README and the pages for users show works: Python runs, commands run, make targets exist.

Python blocks run each in a process and folder of its own, and all of a page one after another in one folder,
twice; those that are tests (`python test`) with pytest. Commands of `sh` and `console` blocks of a section
run in order in one folder, so that one may read what an earlier one wrote. A block whose fence says more than
the language, such as `sh not-tested`, is left alone. The reader is someone with a broker: `~/store`, where
RocketMQ keeps its files unless told otherwise, is a real store.
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
PAGES = (README, *(ROOT / "docs" / f"{name}.md" for name in ("cli", "embedded", "repair", "store", "SPARK")))
COMMANDS = ("seglog", "make")
PROGRAM_TIMEOUT_S = 120


class Block(NamedTuple):
    """A fenced block: its language, its text, the line where the text starts (from 1), and of which page."""

    language: str
    text: str
    line: int
    page: str = ""

    @property
    def where(self) -> str:
        """Its place, for people."""
        return f"{self.page}:{self.line}"


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


def blocks_of(*languages: str) -> list[Block]:
    """Returns the blocks of these languages of all pages."""
    return [
        block._replace(page=page.name)
        for page in PAGES
        for block in fenced_blocks(page.read_text())
        if block.language in languages
    ]


def shell_commands() -> list[tuple[Block, str]]:
    return [(block, command) for block in blocks_of("sh", "console") for command in commands_of(block)]


def seglog_commands() -> dict[str, list[tuple[int, str]]]:
    """Returns our commands by the page and section that show them, with their lines."""
    headings = {
        page.name: [
            (number, line[3:])
            for number, line in enumerate(page.read_text().splitlines(), 1)
            if line.startswith("## ")
        ]
        for page in PAGES
    }
    found: dict[str, list[tuple[int, str]]] = {}
    for block, command in shell_commands():
        if command.startswith("seglog"):
            above = [title for line, title in headings[block.page] if line < block.line]
            found.setdefault(f"{block.page}: {above[-1]}", []).append((block.line, command))
    return found


def dialogue_parts() -> list[tuple[str, str]]:
    """Returns what `console dialogue` blocks show, part by part between lines of `...`, with their places."""
    blocks = blocks_of("console dialogue")
    return [(block.where, part.strip("\n")) for block in blocks for part in block.text.split("\n...\n")]


@pytest.mark.parametrize(("where", "part"), dialogue_parts())
def test_what_a_dialogue_shows_was_said(where, part):
    said = [file.read_text() for file in (ROOT / "tests" / "dialogues").glob("*.txt")]
    assert any(f"{part}\n" in text for text in said), where


def test_the_readme_shows_dialogues():
    pages = [block.page for block in blocks_of("console dialogue")]
    assert pages.count("README.md") == 1
    assert pages.count("repair.md") >= 3


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
    """Runs what a page shows; a failure names the line."""
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
    assert {block.page for block in blocks_of("python")} >= {
        "README.md",
        "embedded.md",
        "store.md",
        "SPARK.md",
    }
    shown = {command for block, command in shell_commands() if block.page == "README.md"}
    assert {"make demo", "make test"} <= shown, "README.md must show `make demo` and `make test`"


def test_readme_shows_only_commands_that_are_tested_here():
    known = ("git clone", "cd", "pip install", *COMMANDS)
    strange = [f"{block.where}: {line}" for block, line in shell_commands() if not line.startswith(known)]
    assert not strange, "neither run nor known here; mark the block, or teach this test"


@pytest.mark.parametrize("block", blocks_of("python"), ids=lambda block: block.where)
def test_python_of_the_readme_runs(block, home):
    if "seglog.spark" in block.text:
        need_spark()
    (home / "example.py").write_text("\n" * (block.line - 1) + block.text)
    check([sys.executable, "example.py"], home, block.where)


@pytest.mark.parametrize("page", ["README.md", "embedded.md", "store.md"])
def test_python_of_a_page_runs_in_the_order_of_reading_in_one_folder_twice(page, home):
    blocks = [block for block in blocks_of("python") if block.page == page]
    for block in blocks * 2:
        (home / "example.py").write_text("\n" * (block.line - 1) + block.text)
        check([sys.executable, "example.py"], home, block.where)


@pytest.mark.parametrize("block", blocks_of("python test"), ids=lambda block: block.where)
def test_tests_of_the_readme_pass(block, home, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # an installed seglog would bring it once more
    (home / "test_example.py").write_text("\n" * (block.line - 1) + block.text)
    command = [sys.executable, "-m", "pytest", "-p", "seglog.pytest_plugin", "test_example.py"]
    check(command, home, block.where)


def test_the_readme_shows_a_test():
    assert [block.page for block in blocks_of("python test")].count("README.md") == 1


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
        check(command, home, f"{section}, line {line}: {command}")


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
