"""The site has every page and every public name; links that work in the repository work in it.

``make site`` builds it, strictly, in CI. What loads the modules of tools/site needs the extra ``docs``, which
the campaign installs.
"""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

import seglog

ROOT = Path(__file__).resolve().parents[2]
NAV = re.findall(r"^ +- [^:]+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
SHOWN = [
    name
    for page in (ROOT / "docs" / "reference").glob("*.md")
    for name in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)
]


def load(name):
    """Returns a module of tools/site, which mkdocs loads by its path as well."""
    return SimpleNamespace(**runpy.run_path(str(ROOT / "tools" / "site" / f"{name}.py")))


def test_every_public_name_is_in_the_reference_once():
    public = [f"seglog.{name}" for name in seglog.__all__ if name != "__version__"]
    assert len(public) > 30
    assert [name for name in public if SHOWN.count(name) != 1] == []


def test_every_page_is_in_the_navigation_once():
    pages = [str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")]
    assert len(pages) > 30
    assert [page for page in pages if NAV.count(page) != 1] == []


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("page", "link", "in_site"),
    [
        ("index.md", "docs/store.md#sizes-on-the-disk", "store.md#sizes-on-the-disk"),
        ("index.md", "perf/LIMITS.md", "perf/LIMITS.md"),
        ("store.md", "../perf/RESULTS.md", "perf/RESULTS.md"),
        ("store.md", "broker.md", "broker.md"),
        ("perf/LIMITS.md", "sampling/memory.py", "sampling/memory.py"),
        ("reference/scan.md", "../store.md", "../store.md"),
        ("store.md", "#put", "#put"),
        ("store.md", "https://semver.org/x.html", "https://semver.org/x.html"),
    ],
)
def test_a_link_of_the_repository_becomes_one_of_the_site(page, link, in_site):
    found = load("pages").on_page_markdown(
        f"see [it]({link}), not `[it]({link})`\n",
        SimpleNamespace(file=SimpleNamespace(src_uri=page)),
        config=None,
        files=None,
    )
    assert found == f"see [it]({in_site}), not `[it]({link})`\n"


@pytest.mark.campaign
def test_a_fence_keeps_only_its_language_and_lists_within_lists_are_indented_by_four():
    page = SimpleNamespace(file=SimpleNamespace(src_uri="store.md"))
    source = "- a\n  - b\n\n```python test\n  - c\n```\n"
    found = load("pages").on_page_markdown(source, page, config=None, files=None)
    assert found == "- a\n    - b\n\n```python\n  - c\n```\n"


@pytest.mark.campaign
def test_roles_of_docstrings_are_shown_as_code():
    plain = load("roles").plain
    assert plain("A :class:`~seglog.storage.store.MessageStore` or :data:`X`.") == "A `MessageStore` or `X`."
