"""Comments, docstrings and pages have the field's plain words; names in commands to type are quoted."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("examples", "perf", "pyspark_seglog", "seglog", "tests", "tools")
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/*.md", "examples/*.md", "perf/*.md")
    for page in ROOT.glob(pattern)
    if page.name != "BEHAVIOURS.md"  # it quotes rules of other brokers
)
PURGED = re.compile(
    r"\b(nobody|somebody|anybody|everybody|whoever|whomever|whatever|at hand|made again|lies|tells|how not"
    r"|gone unread|waits? for an end|what bodies say|called so|comes? to the same"
    r"|committed nothing for so long|give the lost end)\b",
    re.IGNORECASE,
)


def comments_and_docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Yields the comments and docstrings of a module, those of attributes too, with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value.lineno, str(node.value.value)


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Yields the string constants of a module, parts of f-strings too: one of them may reach a user."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


JOINED = re.compile(r"""["']\s*[fFrRbB]*["']""")
ANYWHERE = re.compile(PURGED.pattern.replace(r"\b", ""), re.IGNORECASE)


def may_have_one(content: str) -> bool:
    """Returns False only if a file has none of the words: one may be split, or stand behind an escape."""
    return any(ANYWHERE.search(text) for text in (content, JOINED.sub("", content)))


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yields what is there to read in a file, by the line on which each text begins."""
    content = path.read_text()
    if not may_have_one(content):  # to parse all costs seconds
        return
    if path.suffix == ".md":
        yield from enumerate(content.splitlines(), 1)
        return
    yield from comments_and_docstrings(content)
    if path.relative_to(ROOT).parts[0] in {"seglog", "pyspark_seglog"}:
        yield from texts(content)


def is_python(path: Path) -> bool:
    """Returns whether a file is a module, a stub or a script of Python."""
    if path.suffix in {".py", ".pyi"}:
        return True
    return not path.suffix and path.is_file() and path.read_bytes().startswith(b"#!/usr/bin/env python")


def given_up(paths: Iterator[Path] | list[Path]) -> list[str]:
    """Returns where files have words that were given up."""
    return sorted(
        {
            f"{path.relative_to(ROOT)}:{line + text.count(chr(10), 0, word.start())}: {word.group()}"
            for path in paths
            for line, text in prose(path)
            for word in PURGED.finditer(text)
        }
    )


@pytest.mark.parametrize("folder", FOLDERS)
def test_prose_of_a_folder_has_none_of_the_words_that_were_given_up(folder):
    assert given_up(path for path in (ROOT / folder).rglob("*") if is_python(path)) == []


def test_pages_have_none_of_the_words_that_were_given_up():
    assert given_up(PAGES) == []


@pytest.mark.parametrize("source", ['"at " "hand"', 'f"{x} at "\n    f"hand"', '"\\nnobody"', "# Whatever"])
def test_a_file_is_parsed_also_where_a_word_is_split_or_behind_an_escape(source):
    assert may_have_one(source)


def test_prose_is_comments_docstrings_and_what_a_user_may_read(tmp_path):
    source = '@command.command\ndef f():\n    """Have nobody get it."""\n    x = f"{y} tells"  # whoever\n'
    assert list(comments_and_docstrings(source)) == [(4, "# whoever"), (3, "Have nobody get it.")]
    assert (4, " tells") in list(texts(source))


PACKAGE = ROOT / "seglog"
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
        f"{path.relative_to(PACKAGE)}: {shown}"
        for path in PACKAGE.rglob("*.py")
        for shown in unquoted(path.read_text())
    }
    assert found == set()
