"""What RocketMQ decided is stated in one module of the package, and named everywhere else."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from seglog.storage.format import names, system_names

PACKAGE = Path(__file__).parents[2] / "seglog"
STATED_IN = {"storage/format/names.py", "storage/format/system_names.py"}
NAMES = {
    *system_names.SYSTEM_TOPICS,
    *system_names.SYSTEM_GROUPS,
    *system_names.SYSTEM_PREFIXES,
    *(system_names.SYSTEM_GROUP_PREFIX, system_names.TIMER_TOPIC, system_names.DELAY_GROUP),
    *(names.RETRY_PREFIX, names.DLQ_PREFIX, names.LMQ_PREFIX, names.PARK_PREFIX),
}


@pytest.fixture(scope="module")
def stated() -> dict[str, tuple[set[str], set[str]]]:
    """Returns the strings of each module, and where it makes bytes of numbers; each is parsed once."""
    return {
        path.relative_to(PACKAGE).as_posix(): facts_of(path.read_text())
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def facts_of(source: str) -> tuple[set[str], set[str]]:
    """Returns the strings that a module states, and its calls that make bytes of numbers, with their lines.

    Docstrings are among the strings: they are longer than any name.
    """
    strings, made = set(), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            strings.add(node.value)
        elif isinstance(node, ast.Attribute) and node.attr in {"from_bytes", "to_bytes"}:
            made.add(f"line {node.lineno}: {node.attr}")
        elif isinstance(node, ast.Call) and is_nameless(node):
            made.add(f"line {node.lineno}: a Layout without a name")
    return strings, made


def test_names_of_the_system_are_stated_in_one_place(stated):
    assert stated.keys() >= STATED_IN
    wrong = {
        module: found
        for module, (strings, _made) in stated.items()
        if module not in STATED_IN and (found := NAMES & strings)
    }
    assert wrong == {}, "seglog/storage/format/system_names.py has these names"


# What states the bytes of a number outside of the formats: module → why
BYTES_OF_THEIR_OWN = {
    "broker/filters/bloom.py": "the words of MurmurHash3, which are little-endian",
}
OF_NUMBER = re.compile(r"[<>=!@](\d*[xcbB?hHiIlLqQnNefdsp])+|[<>=|][iufVSb]\d+")


def test_bytes_of_numbers_are_stated_by_the_formats_alone(stated):
    wrong = {
        module: found
        for module, facts in stated.items()
        if not module.startswith("storage/format/") and (found := bytes_of_numbers(*facts))
    }
    unexpected = {module: found for module, found in wrong.items() if module not in BYTES_OF_THEIR_OWN}
    assert unexpected == {}, "seglog/storage/format/layout.py has I16, I32, U32, I64 and Layout"
    assert BYTES_OF_THEIR_OWN.keys() <= wrong.keys(), "a module needs no exception any more"


def bytes_of_numbers(strings: set[str], made: set[str]) -> set[str]:
    """Returns the formats of numbers among strings, and what makes bytes of them otherwise."""
    return {text for text in strings if OF_NUMBER.fullmatch(text)} | made


@pytest.mark.parametrize("line", ['struct.Struct(">iq")', 'x.to_bytes(4, "big")', 'Layout("", I32)'])
def test_bytes_of_a_number_are_seen(line):
    assert bytes_of_numbers(*facts_of(line))


def is_nameless(call: ast.Call) -> bool:
    """Returns whether a call makes a Layout that has no name."""
    first = call.args[0] if call.args else None
    return isinstance(first, ast.Constant) and first.value == "" and ast.unparse(call.func) == "Layout"
