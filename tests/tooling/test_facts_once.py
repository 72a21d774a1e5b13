"""What RocketMQ decided is stated in one module of the package, and named everywhere else."""

from __future__ import annotations

import ast
import re
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


# What states the bytes of a number outside of the formats: module → why
BYTES_OF_THEIR_OWN = {
    "broker/filters/bloom.py": "the words of MurmurHash3, which are little-endian",
    "spark/compact/keys.py": "the words of our own hash, which are little-endian",
}
OF_NUMBER = re.compile(r"[<>=!@](\d*[xcbB?hHiIlLqQnNefdsp])+|[<>=|][iufVSb]\d+")


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_bytes_of_numbers_are_stated_by_the_formats_alone(module):
    name = module.relative_to(PACKAGE).as_posix()
    if name.startswith("storage/format/") or name in BYTES_OF_THEIR_OWN:
        return
    stated = {text for text in strings_of(module) if OF_NUMBER.fullmatch(text)}
    nodes = list(ast.walk(ast.parse(module.read_text())))
    called = {node.attr for node in nodes if isinstance(node, ast.Attribute)} & {"from_bytes", "to_bytes"}
    made = {f"line {node.lineno}" for node in nodes if isinstance(node, ast.Call) and is_nameless(node)}
    assert not stated | called | made, "seglog/storage/format/layout.py has I16, I32, U32, I64 and Layout"


def is_nameless(call: ast.Call) -> bool:
    """Returns whether a call makes a Layout that has no name."""
    first = call.args[0] if call.args else None
    return isinstance(first, ast.Constant) and first.value == "" and ast.unparse(call.func) == "Layout"
