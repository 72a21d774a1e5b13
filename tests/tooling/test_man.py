"""The manual pages: one for each command, and nothing in a help text is an order to roff."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from seglog.cli.main import COMMANDS, commands
from tests.support.machine.patience import patience_s

ROOT = Path(__file__).resolve().parents[2]
MAN = runpy.run_path(str(ROOT / "tools" / "render-man"))
REQUESTS = {"TH", "SH", "SS", "PP", "TP", "B", "BR", "nf", "fi"}
HOSTILE = "Have a \\fB backslash.\n\n.so /etc/passwd\n\n\b\n'br --and-a-hyphen\n.sp"


def root():
    return click.Context(commands, info_name="seglog")


@pytest.fixture(scope="module")
def pages():
    return dict(MAN["pages"](root()))


def hostile_command():
    option = click.Option(["--x-y"], metavar='"A\\B"', help=".so /etc/passwd")
    return click.Command("hostile", params=[option], help=HOSTILE)


def warnings_of(text):
    """Returns what groff says of a page; nothing where it is not installed."""
    if shutil.which("groff") is None:
        return ""
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", "-Kutf8"],
        check=True,
        input=text,
        capture_output=True,
        text=True,
        timeout=patience_s(60),
    )
    return done.stderr


def test_every_command_has_a_page_and_groups_have_one_for_each_of_theirs(pages):
    assert {f"seglog-{name}.1" for name in COMMANDS} <= pages.keys()
    assert {"seglog.1", "seglog-topic-create.1", "seglog-spark-audit.1"} <= pages.keys()


def test_pages_have_only_our_requests_and_no_line_that_roff_warns_of(pages):
    used = {request for text in pages.values() for request in re.findall(r"^[.'](\S*)", text, re.MULTILINE)}
    assert used == REQUESTS
    joined = "".join(pages.values())
    assert not re.search(r"\\eb\b|[\b\f]", joined), "a mark of click is shown"
    assert warnings_of(joined) == ""


def test_what_a_page_says_of_options_is_what_the_help_says(pages):
    text = pages["seglog-repair.1"]
    assert '.B "\\-\\-apply"\nDo it. [default: show what would be done]\n' in text
    assert "seglog repair [OPTIONS] STORE" in text
    assert '.BR "seglog" (1)' in text


def test_hostile_help_is_text():
    text = MAN["page"](click.Context(hostile_command(), info_name="hostile"))
    lines = text.splitlines()
    assert {line.split()[0] for line in lines if line.startswith((".", "'"))} <= {
        f".{name}" for name in REQUESTS
    }
    assert '.B "\\-\\-x\\-y \\(dqA\\eB\\(dq"' in lines
    assert lines.count("\\&.so /etc/passwd") == 2
    assert "\\&'br \\-\\-and\\-a\\-hyphen" in lines
    assert "Have a \\efB backslash." in lines
    assert warnings_of(text) == ""
