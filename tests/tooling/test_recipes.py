"""The notebook of recipes runs from its first cell to its last, and prints what stands below each."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support.machine.patience import patience_s
from tests.support.machine.spark_here import need_spark
from tests.tooling.test_readme import Block, fenced_blocks

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "recipes.md"


def cells() -> list[tuple[Block, str]]:
    """Returns each Python block, and what stands in the block of text after it."""
    found: list[tuple[Block, str]] = []
    for block in fenced_blocks(PAGE.read_text()):
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
            exec(compile("\n" * (block.line - 1) + block.text, str(PAGE), "exec"), names)
        if printed.getvalue().strip() != shown.strip():
            raise AssertionError(f"{PAGE}:{block.line} printed\n{printed.getvalue()}")


def test_each_recipe_asked_for_is_there():
    headings = [line[3:] for line in PAGE.read_text().splitlines() if line.startswith("## ")]
    assert len(headings) == 8
    assert all(block.text.strip() for block, _shown in cells())


@pytest.mark.spark
def test_every_cell_prints_what_stands_below_it(tmp_path):
    need_spark()
    script = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from {__name__} import run_cells; run_cells()"
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=tmp_path, capture_output=True, text=True, timeout=patience_s(180), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
