"""Comments and docstrings use the field's plain words (help texts of commands are the user's, and stay)."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOP_ROOMS = (
    "broker",
    "cli",
    "client",
    "consumer",
    "doctor",
    "producer",
    "remoting",
    "server",
    "spark",
    "storage",
)
ROOMS = (*(f"seglog/{room}" for room in TOP_ROOMS), "tests/support")
PURGED = re.compile(r"\b(nobody|whoever|whomever|whatever|at hand|made again)\b", re.IGNORECASE)
Node = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def is_help(node: ast.AST) -> bool:
    """Returns whether a docstring is what a command prints as its help."""
    return isinstance(node, ast.FunctionDef) and any(
        ast.unparse(decorator).startswith(("command", "click.")) for decorator in node.decorator_list
    )


def prose(source: str) -> Iterator[str]:
    """Yields the comments and docstrings of a module, those of attributes too."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, Node) and not is_help(node):
            for each in node.body:
                if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                    yield str(each.value.value)


@pytest.mark.parametrize("room", ROOMS)
def test_prose_has_none_of_the_words_that_were_given_up(room):
    found = {
        f"{path.relative_to(ROOT)}: {word.group()}"
        for path in (ROOT / room).rglob("*.py")
        for text in prose(path.read_text())
        for word in PURGED.finditer(text)
    }
    assert not found


def test_code_help_and_texts_are_no_prose():
    source = '@command.command\ndef f():\n    """Have nobody get it."""\n    x = "whatever"\n'
    assert list(prose(source)) == []
    assert list(prose("x = 1  # whoever\n")) == ["# whoever"]
