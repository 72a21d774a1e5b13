"""A path or name in a command to type is quoted as a shell needs it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2] / "seglog"
PLACES = re.compile(r"\b(self\.)?_?(root|path|store|folder|topic|group|target|place)\b")
"""What of an expression may hold blanks, or begin with a dash."""
QUOTED = re.compile(r"shell_(text|line)\(|typed")


def unquoted(source: str) -> Iterator[str]:
    """Yields the expressions in commands of f-strings that are neither quoted nor harmless."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.JoinedStr):
            continue
        before = ""
        for part in node.values:
            if isinstance(part, ast.Constant):
                before += str(part.value)
                continue
            shown = ast.unparse(part)
            is_command = "`seglog " in before and before.count("`") % 2 == 1
            is_command = is_command or re.match("seglog [a-z]{2,} ", before) is not None
            if is_command and PLACES.search(shown) and not QUOTED.search(shown):
                yield shown
            before += "x"


def test_an_expression_that_is_not_quoted_is_found():
    assert list(unquoted("f'run `seglog check {root}`'")) == ["{root}"]
    assert list(unquoted("f'run `seglog check {shell_text(root)}`, {root} is full'")) == []
    assert list(unquoted("f'seglog get {store.path} {typed}'")) == ["{store.path}"]


def test_paths_in_commands_to_type_are_quoted():
    found = {
        f"{path.relative_to(ROOT)}: {shown}"
        for path in ROOT.rglob("*.py")
        for shown in unquoted(path.read_text(encoding="utf-8"))
    }
    assert found == set()
