"""The programs of ``examples/`` run as they are, and the notebook of recipes; Spark in the campaign."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support.machine.patience import patience_s
from tests.support.machine.spark_here import need_spark
from tests.support.rows import every_row
from tests.support.scale import is_gate
from tests.tooling.test_readme import Block, fenced_blocks

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PROGRAMS = sorted(path.name for path in EXAMPLES.glob("*.py"))
OF_SPARK = [name for name in PROGRAMS if "spark" in name]
LONGEST_LINES = 50


def command_of(program: str) -> list[str]:
    if program.startswith("test_"):
        plugin = ("-p", "seglog.pytest_plugin", "-p", "no:cacheprovider")
        return [sys.executable, "-m", "pytest", *plugin, program]
    return [sys.executable, program]


def run(program: str, folder: Path) -> None:
    """Runs a program in a folder."""
    shutil.copy(EXAMPLES / program, folder)
    done = subprocess.run(
        command_of(program),
        check=False,
        cwd=folder,
        # An installed seglog would bring its plugin once more.
        env=os.environ | {"HOME": str(folder), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=patience_s(300),
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert done.stdout


def test_an_example_runs_in_an_empty_folder_and_again(tmp_path: Path) -> None:
    with every_row() as row:
        for program in PROGRAMS:
            if program in OF_SPARK:
                continue
            folder = tmp_path / program.removesuffix(".py")
            folder.mkdir()
            for turn in ("first",) if is_gate() else ("first", "second"):
                with row(program, turn):
                    run(program, folder)


@pytest.mark.spark
@pytest.mark.campaign
@pytest.mark.parametrize("program", OF_SPARK)
def test_an_example_of_spark_runs_in_an_empty_folder(program: str, tmp_path: Path) -> None:
    need_spark()
    run(program, tmp_path)


def test_the_page_of_the_examples_has_each_of_them() -> None:
    page = (EXAMPLES / "README.md").read_text()
    assert re.findall(r"^\| \[([a-z_]+\.py)\]", page, re.MULTILINE)
    assert sorted(re.findall(r"^\| \[([a-z_]+\.py)\]", page, re.MULTILINE)) == PROGRAMS


def test_an_example_is_short_and_says_what_it_shows() -> None:
    with every_row() as row:
        for program in PROGRAMS:
            with row(program):
                lines = (EXAMPLES / program).read_text().splitlines()
                assert lines[0].startswith('"""')
                assert 20 <= len(lines) <= LONGEST_LINES


RECIPES = ROOT / "docs" / "recipes.md"


def cells() -> list[tuple[Block, str]]:
    """Returns each Python block, and what stands in the block of text after it."""
    found: list[tuple[Block, str]] = []
    for block in fenced_blocks(RECIPES.read_text()):
        if block.language == "python":
            found.append((block, ""))
        elif block.language == "text":
            found[-1] = (found[-1][0], block.text)
    return found


def run_cells() -> None:
    """Runs all cells in this process and folder; raises where one prints something else."""
    names: dict[str, object] = {"__name__": "__main__"}
    for block, shown in cells():
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * (block.line - 1) + block.text, str(RECIPES), "exec"), names)
        if printed.getvalue().strip() != shown.strip():
            raise AssertionError(f"{RECIPES}:{block.line} printed\n{printed.getvalue()}")


def test_each_recipe_asked_for_is_there():
    headings = [line[3:] for line in RECIPES.read_text().splitlines() if line.startswith("## ")]
    assert len(headings) == 8
    assert all(block.text.strip() for block, _shown in cells())


@pytest.mark.spark
@pytest.mark.campaign
def test_every_cell_prints_what_stands_below_it(tmp_path):
    need_spark()
    script = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from {__name__} import run_cells; run_cells()"
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=tmp_path, capture_output=True, text=True, timeout=patience_s(180), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
