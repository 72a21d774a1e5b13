"""What runs over the Python kernels, and over kernels with sanitizers: at the gate, and in the campaign.

What the campaign leaves out of the storage room reaches no kernel, through no import, also one on use. What
the gate runs is a part of that, and its other kernels have a test that runs both kinds of them.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "seglog" / "storage" / "kernels"
OTHERS = ROOT / "tests" / "storage" / "kernels"
COMPARED_ELSEWHERE = (
    ROOT / "tests" / "remoting" / "frames",
    ROOT / "tests" / "storage" / "files" / "test_store_root.py",
    ROOT / "tests" / "storage" / "writes" / "test_fast_path.py",
    ROOT / "tests" / "storage" / "writes" / "test_calls.py",
)
"""These, and those of the kernels' room, run both kinds of kernels themselves."""
FOLLOWED = (ROOT / "tests", KERNELS, ROOT / "seglog" / "storage" / "files" / "beneath.py")
"""Where imports are followed; the last has what Python does in place of a kernel."""


@cache
def listed(name: str) -> tuple[Path, ...]:
    """Returns the files and folders in a variable of the Makefile."""
    words = ["make", "--no-print-directory", f"--eval=shown: ; @echo '$({name})'", "shown"]
    shown = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return tuple(ROOT / word for word in shown.split())


def run_by(target: str) -> list[Path]:
    """Returns what a target of the Makefile runs: files and folders."""
    words = subprocess.run(
        ["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.replace("'", " ")
    return [ROOT / word for word in words.split() if word.startswith("tests/")]


def left_out():
    """Returns the test files of the storage room that no run over the Python kernels has."""
    run = listed("TWIN_ALL")
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


def files_in(paths: Iterable[Path]) -> set[Path]:
    """Returns the test files that are named, or in a folder that is."""
    return {file for one in paths for file in ([one] if one.is_file() else one.rglob("test_*.py"))}


@pytest.mark.parametrize("kind", ["TWIN", "SANITIZED"])
def test_the_gate_runs_a_part_of_what_the_campaign_runs(kind):
    gate, campaign = listed(kind), listed(f"{kind}_ALL")
    assert [path for path in (*gate, *campaign) if not path.exists()] == []
    assert files_in(gate)
    assert files_in(gate) < files_in(campaign)


def test_targets_run_what_is_listed_for_them():
    assert set(run_by("twin")) == set(listed("TWIN"))
    assert set(run_by("sanitize")) == set(listed("SANITIZED"))
    assert set(run_by("campaign")) == {*listed("TWIN_ALL"), *listed("SANITIZED_ALL")}


def test_the_gate_runs_every_kernel_in_both_kinds():
    compared: set[Path] = set()
    todo = files_in([OTHERS, *COMPARED_ELSEWHERE])
    while todo:
        at = todo.pop()
        # What tests, their helpers and kernels import is compared, what the engine does for itself is not.
        todo |= {file for file in imported(at) if any(map(file.is_relative_to, FOLLOWED))} - compared
        compared |= imported(at)
    kernels = {file for file in KERNELS.rglob("*.py") if file.name != "__init__.py"}
    assert len(kernels) > 20
    assert kernels - compared == set()


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
    # The campaign's skips are no failures, and what it runs may be the gate's one day.
    files = {file for one in listed("TWIN_ALL") for file in ([one] if one.is_file() else one.rglob("*.py"))}
    reasons = {reason for file in files for reason in native_only_reasons(file)}
    assert "only native kernels make pages ready" in reasons
    assert {one for one in reasons if not any(re.fullmatch(pattern, one) for pattern in allowed)} == set()
