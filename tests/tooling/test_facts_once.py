"""What RocketMQ decided is stated in one module of the package, and named everywhere else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from seglog.storage.format import names, system_names

PACKAGE = Path(__file__).parents[2] / "seglog"
MODULES = sorted(PACKAGE.rglob("*.py"))
STATED_IN = {"storage/format/names.py", "storage/format/system_names.py"}
NAMES = {
    *system_names.SYSTEM_TOPICS,
    *system_names.SYSTEM_GROUPS,
    *system_names.SYSTEM_PREFIXES,
    *(system_names.SYSTEM_GROUP_PREFIX, system_names.TIMER_TOPIC, system_names.DELAY_GROUP),
    *(names.RETRY_PREFIX, names.DLQ_PREFIX, names.LMQ_PREFIX, names.PARK_PREFIX),
}


def strings_of(module: Path) -> set[str]:
    """Returns the strings that a module states, docstrings apart: those are longer than any name."""
    nodes = ast.walk(ast.parse(module.read_text()))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_names_of_the_system_are_stated_in_one_place(module):
    if module.relative_to(PACKAGE).as_posix() not in STATED_IN:
        assert not NAMES & strings_of(module), "seglog/storage/format/system_names.py has these names"
