"""What the README and the pages for users show works: Python runs, commands run, make targets exist.

Python blocks of a page run once, one after another in one folder, each in a process of its own; in the
campaign they do so twice, and each runs in a folder of its own besides. Those that are tests (`python test`)
run with pytest, all in one process. Commands of `sh` and `console` blocks of a section run in order in one
folder, so that one may read what an earlier one wrote; what starts Spark runs in the campaign, and the gate
makes sure that its names and options exist. A block whose fence says more than the language, such as
`sh not-tested`, is left alone. The reader is someone with a broker: `~/store`, where RocketMQ keeps its files
unless told otherwise, is a real store.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from seglog.cli.main import commands
from tests.support.machine.patience import patience_s
from tests.support.machine.spark_here import need_spark
from tests.support.material.golden import extract
from tests.support.rows import every_row
from tests.support.scale import is_gate

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


def test_what_a_dialogue_shows_was_said():
    said = [file.read_text() for file in (ROOT / "tests" / "dialogues").glob("*.txt")]
    unsaid = [
        f"{where}:\n{part}" for where, part in dialogue_parts() if not any(f"{part}\n" in one for one in said)
    ]
    assert unsaid == []


def test_the_readme_shows_dialogues():
    pages = [block.page for block in blocks_of("console dialogue")]
    assert pages.count("README.md") == 1
    assert pages.count("repair.md") >= 3


def make_home(folder: Path) -> Path:
    """Makes the home and working folder of the reader, with the store of a broker in it; returns it."""
    folder.mkdir()
    extract("roll", folder).rename(folder / "store")
    return folder


def environment(home: Path) -> dict[str, str]:
    """Returns the environment of a reader who has just installed: our command is found first."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return kept | {"HOME": str(home), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"}


def check(arguments: list[str] | str, cwd: Path, where: str, **variables: str) -> None:
    """Runs what a page shows; a failure names the line."""
    done = subprocess.run(
        arguments,
        check=False,
        cwd=cwd,
        env=environment(cwd) | variables,
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


def run_block(block: Block, folder: Path) -> None:
    """Runs a block of Python, with the numbers of its lines in the page."""
    (folder / "example.py").write_text("\n" * (block.line - 1) + block.text)
    check([sys.executable, "example.py"], folder, block.where)


def test_python_of_a_page_runs_in_the_order_of_reading_in_one_folder(tmp_path):
    with every_row() as row:
        for page in ("README.md", "embedded.md", "store.md"):
            blocks = [block for block in blocks_of("python") if block.page == page]
            folder = make_home(tmp_path / page)
            for block in blocks * (1 if is_gate() else 2):
                with row(block.where):
                    run_block(block, folder)


@pytest.mark.campaign
@pytest.mark.parametrize("block", blocks_of("python"), ids=lambda block: block.where)
def test_a_block_of_python_needs_none_before_it(block, tmp_path):
    if "seglog.spark" in block.text:
        need_spark()
    run_block(block, make_home(tmp_path / "home"))


def test_blocks_that_are_tests_pass(tmp_path):
    home = make_home(tmp_path / "home")
    blocks = blocks_of("python test")
    assert [block.page for block in blocks].count("README.md") == 1
    for block in blocks:
        name = f"test_{block.page.removesuffix('.md')}_{block.line}.py"
        (home / name).write_text("\n" * (block.line - 1) + block.text)
    # What follows builds on what stands above it.
    for page in (ROOT / "docs" / "server.md", ROOT / "docs" / "pytest.md"):
        texts = [block.text for block in fenced_blocks(page.read_text()) if block.language == "python test"]
        assert texts
        (home / f"test_{page.stem}.py").write_text("\n".join(texts))
    # An installed seglog would bring its plugin once more.
    command = [sys.executable, "-m", "pytest", "-p", "seglog.pytest_plugin", "-p", "no:cacheprovider"]
    variables = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
    check(command, home, "tests of pages", **variables)


def test_make_targets_of_the_readme_exist():
    with every_row() as row:
        for block, command in shell_commands():
            if command.startswith("make"):
                with row(command):
                    check(["make", "--dry-run", *shlex.split(command)[1:]], ROOT, block.where)


OF_SPARK = [section for section in seglog_commands() if section.startswith("SPARK.md")]
OF_ENGINE = [section for section in seglog_commands() if section not in OF_SPARK]


def test_seglog_commands_of_the_readme_run(tmp_path):
    with every_row() as row:
        for section in OF_ENGINE:
            home = make_home(tmp_path / section)
            for line, command in seglog_commands()[section]:
                with row(section, line, command):
                    check(command, home, command)


@pytest.mark.campaign
@pytest.mark.parametrize("section", OF_SPARK)
def test_commands_of_spark_run(section, tmp_path):
    need_spark()
    home = make_home(tmp_path / "home")
    for line, command in seglog_commands()[section]:
        assert command.startswith("seglog spark")
        check(command, home, f"{section}, line {line}: {command}")


def test_commands_of_spark_have_options_that_there_are():
    shown = [(line, command) for section in OF_SPARK for line, command in seglog_commands()[section]]
    assert len(shown) >= 5
    with every_row() as row:
        for line, command in shown:
            with row("SPARK.md", line, command):
                parse(shlex.split(command)[1:])


def parse(words: list[str]) -> None:
    """Parses a command line as the command does, and runs nothing."""
    command: click.Command | None = commands
    context = click.Context(commands, info_name="seglog")
    while isinstance(command, click.Group):
        name, *words = words
        command = command.get_command(context, name)
        assert command is not None, name
    assert command is not None
    command.make_context(command.name, words, parent=context)


def test_python_of_spark_imports_names_that_there_are():
    recipes = fenced_blocks((ROOT / "docs" / "recipes.md").read_text())
    texts = [block.text for block in (*blocks_of("python"), *recipes) if block.language == "python"]
    texts += [path.read_text() for path in sorted((ROOT / "examples").glob("*spark*.py"))]
    lines = {
        line for text in texts for line in re.findall(r"^(?:from|import) .*seglog.*", text, re.MULTILINE)
    }
    assert "from seglog.spark.session import local_session" in lines
    with every_row() as row:
        for line in sorted(lines):
            with row(line):
                exec(line, {})


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
