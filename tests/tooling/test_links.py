"""Every link of a page leads to a file that is there, and to a heading that it has."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "perf").glob("*.md"),
        *(ROOT / "examples").glob("*.md"),
    ]
)
LINK = re.compile(r"\[[^\]\[]+\]\(([^()\s]+)\)")
FENCE = re.compile(r"^(`{3,})[^\n`]*\n.*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)


def without_code(markdown: str) -> str:
    """Returns a page without its blocks and spans of code, in which brackets are no links."""
    return re.sub(r"`[^`\n]*`", "code", FENCE.sub("", markdown))


def anchor(heading: str) -> str:
    """Returns what a heading is called in a link: lower case, hyphens for blanks, nothing for signs."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@cache
def anchors(page: Path) -> set[str]:
    """Returns those of all headings of a page."""
    lines = FENCE.sub("", page.read_text()).splitlines()
    return {anchor(line.lstrip("#")) for line in lines if line.startswith("#")}


def is_wrong(target: str, page: Path) -> bool:
    """Returns whether a link of a page to a file, or to a heading in one, leads nowhere."""
    if re.match(r"[a-z]+:", target):
        return False
    name, _, part = target.partition("#")
    file = page.parent / name if name else page
    return not file.exists() or (part != "" and part not in anchors(file))


def test_links_of_a_page_lead_somewhere():
    wrong = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in PAGES
        for target in LINK.findall(without_code(page.read_text()))
        if is_wrong(target, page)
    ]
    assert wrong == []


def test_a_link_that_leads_nowhere_is_wrong():
    targets = (
        "nothing.md",
        "README.md#nothing",
        "#nothing",
        "README.md",
        "README.md#set-up",
        "#set-up",
        "https:a",
    )
    assert [is_wrong(target, ROOT / "README.md") for target in targets] == [True] * 3 + [False] * 4


def test_pages_are_found_and_headings_named_as_github_does():
    assert {"README.md", "store.md", "LIMITS.md"} <= {page.name for page in PAGES}
    assert anchor(" What is `safe` when?") == "what-is-safe-when"
    assert LINK.findall(without_code("[a](b.md) `[c](d.md)` [e](#f)\n```\n[g](h)\n```\n")) == ["b.md", "#f"]
