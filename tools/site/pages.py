"""A hook of MkDocs: adds pages from outside docs/, and adapts the links between all pages.

The site has the folders of the repository, without ``docs/``; README is its first page. So a link that
works on GitHub needs only a new ending: a page is at its place in the site, any other file is copied to
the place that it has in the repository.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md", "perf/*.md")
LINK = re.compile(r"(\]\()([^()\s:#]+)(#[^()\s]*)?(\))")
CODE = re.compile(r"^(`{3,})[^\n`]*\n.*?^\1[ \t]*$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^(`{3,}\w+) [^\n`]*$", re.MULTILINE)
NESTED = re.compile(r"^  (?=[-*] )", re.MULTILINE)


def in_site(path: str) -> str:
    """Returns the place of a repository's file in the site."""
    return "index.md" if path == "README.md" else path.removeprefix("docs/")


def in_repository(place: str) -> str:
    """Returns the repository's file from which a page of the site is made."""
    if place == "index.md":
        return "README.md"
    return place if (ROOT / place).is_file() else f"docs/{place}"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages from outside docs/, and the files to which pages have links."""
    for pattern in OUTSIDE:
        for path in sorted(ROOT.glob(pattern)):
            place = in_site(str(path.relative_to(ROOT)))
            files.append(File.generated(config, place, abs_src_path=str(path)))
    for page in list(files.documentation_pages()):
        here = in_repository(page.src_uri)
        text = CODE.sub("", (ROOT / here).read_text(encoding="utf-8"))
        for link in LINK.finditer(text):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(here), link[2]))
            if (ROOT / target).is_file() and not files.get_file_from_path(in_site(target)):
                files.append(File.generated(config, in_site(target), abs_src_path=str(ROOT / target)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Returns a page with links for the site, and with code and lists in the form for Python-Markdown."""
    here = in_repository(page.file.src_uri)

    def moved(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(here), link[2]))
        place = posixpath.relpath(in_site(target), posixpath.dirname(page.file.src_uri) or ".")
        return f"{link[1]}{place}{link[3] or ''}{link[4]}"

    parts, end = [], 0
    for code in CODE.finditer(markdown):
        parts += [plain_text(LINK.sub(moved, markdown[end : code.start()])), FENCE.sub(r"\1", code.group())]
        end = code.end()
    return "".join([*parts, plain_text(LINK.sub(moved, markdown[end:]))])


def plain_text(markdown: str) -> str:
    """Returns text in which nested lists are indented by four."""
    return NESTED.sub("    ", markdown)
