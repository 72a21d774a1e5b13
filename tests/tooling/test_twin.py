"""What `make twin` leaves out of the storage room reaches no kernel, through no import, also one on use."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "seglog" / "storage" / "kernels"
OTHERS = ROOT / "tests" / "storage" / "kernels"
"""These run both kinds of kernels themselves."""


def run_over_python() -> list[Path]:
    """Returns what `make twin` runs: files and folders."""
    words = subprocess.run(
        ["make", "-n", "twin"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    return [ROOT / word for word in words if word.startswith("tests/")]


def left_out():
    """Returns the test files of the storage room that `make twin` does not run."""
    run = run_over_python()
    files = sorted((ROOT / "tests" / "storage").rglob("test_*.py"))
    return [file for file in files if not any(file.is_relative_to(one) for one in (*run, OTHERS))]


def native_only_reasons(file: Path) -> Iterator[str]:
    """Yields why marks of a test file leave tests out where kernels are not native."""
    for node in ast.walk(ast.parse(file.read_text())):
        if (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) == "pytest.mark.skipif"
            and "KERNELS" in ast.unparse(node.args[0])
        ):
            yield from (ast.literal_eval(word.value) for word in node.keywords if word.arg == "reason")


def files_of(name: str) -> Iterator[Path]:
    """Yields the file of a module of ours, and what its packages run; our own root has only lazy names."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        path = ROOT.joinpath(*parts[:count])
        found = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if found.is_file() and (count > 1 or len(parts) == 1):
            yield found


@cache
def imported(file: Path) -> frozenset[Path]:
    """Returns the files of ours that one imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    ours = (name for name in names if name.partition(".")[0] in {"seglog", "tests"})
    return frozenset(found for name in ours for found in files_of(name))


def reaches_kernels(file: Path) -> bool:
    seen, todo = set(), [file]
    while todo:
        at = todo.pop()
        if at.is_relative_to(KERNELS):
            return True
        if at not in seen:
            seen.add(at)
            todo += imported(at)
    return False


def test_what_twin_leaves_out_reaches_no_kernel():
    files = left_out()
    assert len(files) > 20
    assert [file for file in files if reaches_kernels(file)] == []
    # The fixtures of the room open stores.
    assert [file for file in files if "open_store" in file.read_text()] == []


def test_what_a_store_opens_with_reaches_kernels():
    assert reaches_kernels(ROOT / "seglog" / "storage" / "store.py")
    assert reaches_kernels(ROOT / "tests" / "storage" / "conftest.py")
    assert reaches_kernels(ROOT / "tests" / "storage" / "format" / "queue" / "test_compaction.py")


def test_each_mark_that_leaves_tests_out_of_twin_has_a_reason_that_ci_accepts():
    """CI itself finds such a skip only at its end, after an hour."""
    lines = (ROOT / ".ci" / "allowed-skips").read_text().splitlines()
    parts = [[part.strip() for part in line.split(" | ")] for line in lines if not line.startswith("#")]
    allowed = [pattern for run, pattern, _ in parts if run in {"twin", "*"}]
    files = {file for one in run_over_python() for file in ([one] if one.is_file() else one.rglob("*.py"))}
    reasons = {reason for file in files for reason in native_only_reasons(file)}
    assert "only native kernels make pages ready" in reasons
    assert {one for one in reasons if not any(re.fullmatch(pattern, one) for pattern in allowed)} == set()
