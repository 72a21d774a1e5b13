"""Pages of docs/ that show Python: it works; that for people of other clients shows thirteen things."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.machine.patience import patience_s
from tests.tooling.test_readme import fenced_blocks

PAGE = Path(__file__).resolve().parents[2] / "docs" / "clients.md"


def test_thirteen_things_are_shown_and_each_for_this_client():
    sections = PAGE.read_text().split("\n## ")[1:-1]
    assert [int(section.partition(".")[0]) for section in sections] == list(range(1, 14))
    for section in sections:
        languages = [block.language for block in fenced_blocks(section)]
        assert languages.count("python") == 1
        assert languages[-1] in ("python", "python service")  # run by tests/consumer/test_service_ends.py
        assert {"python kafka-python", "python aiokafka", "java"} & set(languages)


@pytest.mark.parametrize("page", ["clients.md", "server.md"])  # test_readme.py runs the tests of server.md
def test_what_a_page_shows_of_this_package_runs(tmp_path, page):
    blocks = [
        block for block in fenced_blocks((PAGE.parent / page).read_text()) if block.language == "python"
    ]
    script = "\n".join(block.text for block in blocks)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=patience_s(60),
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
