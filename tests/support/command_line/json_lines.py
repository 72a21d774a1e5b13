"""Holds what commands print with ``--json`` against the table of all kinds of lines."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator

from seglog.cli.ui.json_kinds import ERROR, json_table

ROOT: Final = Path(__file__).resolve().parents[3]
PRINTED_BY: Final = ROOT / "tests" / "cli" / "json_kinds.toml"
"""Which test prints a line of which kind; those tests fail if they do not."""

_seen: Final[set[str]] = set()
_right: Final[set[tuple[str, object]]] = set()
"""Kinds, and shapes of lines that are right: whether a line is right follows from these alone."""


@cache
def printed_by(table: str = "printed") -> dict[str, str]:
    """Returns the test by the kind that it prints.

    Args:
        table: ``printed``; of ``elsewhere`` why no test of the command line prints a kind.
    """
    found: dict[str, str] = tomllib.loads(PRINTED_BY.read_text())[table]
    return found


@cache
def _validator(kind: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": json_table().schema()["$defs"]})


def check_line(line: str, *, is_error: bool = False) -> dict[str, Any]:
    """Returns a line as an object, if it is one of a kind of the table, with its fields and no others.

    Args:
        line: The line.
        is_error: Whether it is the error that ended the command.

    Raises:
        AssertionError: It is not.
    """
    found = json.loads(line)
    assert isinstance(found, dict), f"no object: {line}"
    kind = ERROR if is_error else str(found.get("kind"))
    assert kind in json_table().kinds, f"no kind of seglog/cli/ui/json_lines: {line}"
    _seen.add(kind)
    shape = kind, _shape_of(found)
    if shape in _right:
        return found
    problems = [f"{error.json_path}: {error.message}" for error in _validator(kind).iter_errors(found)]
    assert problems == [], f"not as seglog/cli/ui/json_lines has {kind}: {line}"
    _right.add(shape)
    return found


def _shape_of(value: object) -> object:
    """Returns the names and the types in a value of JSON."""
    if isinstance(value, dict):
        return frozenset((name, _shape_of(one)) for name, one in value.items())
    if isinstance(value, list):
        return "array", frozenset(map(_shape_of, value))
    return type(value).__name__


def check_lines(arguments: Sequence[object], stdout: str, stderr: str) -> None:
    """Checks all that a command printed, if it was asked for JSON.

    Args:
        arguments: The words of the command behind ``seglog``.
        stdout: What it printed.
        stderr: What it printed there; of this the lines that are objects are checked.

    Raises:
        AssertionError: A line is not as the table has it.
    """
    words = list(takewhile(lambda word: word != "--", map(str, arguments)))
    if "--json" not in words or "--help" in words:
        return
    is_own_form = words[:2] == ["spark", "sql"] or (words[0] == "export" and "-" in words)
    for line in [] if is_own_form else stdout.splitlines():
        check_line(line)
    for line in stderr.splitlines():
        if line.startswith("{"):
            check_line(line, is_error="exitCode" in line)


@contextmanager
def prints_its_kinds(test: str) -> Iterator[None]:
    """Fails at the end if a test did not print the kinds that the list has it for.

    Args:
        test: The id of the test.

    Raises:
        AssertionError: It did not.
    """
    _seen.clear()
    yield
    name = test.partition("[")[0]
    missing = {kind for kind, one in printed_by().items() if one in (name, test)} - _seen
    assert missing == set(), f"{PRINTED_BY.name} says that {name} prints these kinds"
