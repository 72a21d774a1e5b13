"""What is written from tables in the code, for people and for C, says what the code says."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from seglog.storage.writes.lock_order import LockRank
from tests.support.machine.patience import patience_s

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "seglog" / "storage" / "kernels" / "layout.h"


def run(*command, **options):
    return subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=patience_s(60), **options
    )


def test_pages_and_header_are_up_to_date():
    done = run(sys.executable, ROOT / "tools" / "render-docs", "--check", stdin=subprocess.DEVNULL)
    assert done.stderr.splitlines() == []  # a line for each page, so that the report of a failure has all
    assert done.returncode == 0


@pytest.mark.parametrize(("page", "least"), [("CONTRIBUTING.md", 10), ("docs/ARCHITECTURE.md", 80)])
def test_every_path_that_a_page_names_exists(page, least):
    named = re.findall(r"`((?:seglog|tests|tools|docs)/[^`<]*)`", (ROOT / page).read_text())
    assert len(named) > least
    assert [path for path in named if not (ROOT / path).exists()] == []


OWN_FILE = re.compile(r'f"{OURS}/([A-Za-z][A-Za-z.-]*)')


def test_the_page_of_the_architecture_has_each_file_of_ours_and_each_rank_of_a_lock():
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    modules = [path.read_text() for path in (ROOT / "seglog").rglob("*.py")]
    stated = {name for text in modules for name in OWN_FILE.findall(text)}
    rows = {re.split(r"[/`]", row)[0] for row in re.findall(r"^\| `([^`]+)", page, re.MULTILINE)}
    assert stated - rows == set()
    assert len(stated) > 12
    ranks = re.findall(r"^\| ([0-9]) \| `([A-Z]+)`", page, re.MULTILINE)
    assert ranks == [(str(int(rank)), rank.name) for rank in LockRank]


@pytest.fixture
def copy(tmp_path):
    """Returns the tool in a folder of its own, with the rows of behaviours and without tests."""
    (tmp_path / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "behaviours.md", tmp_path / "tests")
    states = 'works = ""\n[part]\nS2-05 = "no c"\n[open]\n'
    reasons = "".join(f'S{number} = "none of {number}"\n' for number in range(5))
    (tmp_path / "tests" / "behaviour_states.toml").write_text(states + reasons)
    (tmp_path / "tools").mkdir()
    return Path(shutil.copy(ROOT / "tools" / "render-docs", tmp_path / "tools"))


@pytest.fixture
def run_here(copy, capsys, monkeypatch):
    """Returns what runs the copy in this process, for its exit code and what it says of a failure."""

    def run_with(*words):
        monkeypatch.setattr(sys, "argv", [str(copy), *words])
        try:
            runpy.run_path(str(copy), run_name="__main__")
        except SystemExit as ended:
            return ended.code, capsys.readouterr().err
        except ValueError as error:
            return 1, str(error)
        raise AssertionError("it has not ended by an exit code")

    return run_with


def render(copy, run_here):
    (copy.parents[1] / "seglog" / "storage" / "kernels").mkdir(parents=True)
    assert run_here() == (0, "")
    return (copy.parents[1] / "docs" / "BEHAVIOURS.md").read_text()


def test_a_stale_page_is_named(run_here):
    code, said = run_here("--check")
    assert code == 1
    assert "docs/FORMAT.md is out of date; run: make docs" in said
    assert "layout.h is out of date" in said


TESTS = "def test_s2_05_a(): ...\n\nclass X:\n    async def test_S2_05_b(self): ...\n"


@pytest.mark.parametrize(
    ("edit", "state", "counts"),
    [
        (("", ""), "**part**: no c", "0 work, 0 have a stand-in, 1 are there in part, and 209"),
        (('works = ""\n[part]\nS2-05 = "no c"', 'works = "S2-05"\n[part]'), "works", "1 work, 0 have"),
        (("[part]", "[part]\n[stand-in]"), "**stand-in**: no c", "0 work, 1 have a stand-in, 0 are"),
    ],
)
def test_every_behaviour_is_listed_with_its_state_and_the_tests_that_name_it(
    copy, run_here, edit, state, counts
):
    tests = copy.parents[1] / "tests"
    (tests / "test_x.py").write_text(TESTS)
    states = tests / "behaviour_states.toml"
    states.write_text(states.read_text().replace(*edit))
    page = render(copy, run_here)
    rows = {line[2:7]: line for line in page.splitlines() if line.startswith("| S")}
    assert len(rows) == 210
    named = "`tests/test_x.py::test_s2_05_a`<br>`tests/test_x.py::test_S2_05_b`"
    assert rows["S2-05"].endswith(f"| broker | {state} | {named} |")
    assert rows["S2-04"].endswith("| broker | open |  |")
    assert "\n- S2: none of 2\n" in page
    assert f"\nOf 210 rows {counts}" in page


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("test_x.py", "def test_s9_99_a(): ...\n", "not in tests/behaviours.md: S9-99"),
        ("test_x.py", "def test_s2_04_a(): ...\n", "S2-04 is open in tests/behaviour_states.toml"),
        ("behaviour_states.toml", 'works = "S2-05"\npart = {}\nopen = {S2 = "no"}\n', "S0-01 is in no list"),
        (
            "behaviour_states.toml",
            'works = "S0-01"\npart = {}\nopen = {S0 = "no"}\n',
            "S0-01 is works in tests/behaviour_states.toml: []",
        ),
        (
            "behaviour_states.toml",
            'works = ""\npart = {}\nstand-in = {S0-01 = "b"}\nopen = {S0 = "no"}\n',
            "S0-01 is stand-in in tests/behaviour_states.toml: []",
        ),
        ("behaviour_states.toml", 'works = "S2-05 S2-05"\npart = {}\nopen = {}\n', "has a row twice"),
        ("behaviour_states.toml", 'works = ""\npart = {S2-05 = ""}\nopen = {}\n', "without a reason"),
        ("behaviours.md", "| S2-05 | a | b | broker | c |\n" * 2, "S2-05 is in tests/behaviours.md twice"),
    ],
)
def test_a_list_of_behaviours_that_is_wrong_is_not_made(copy, run_here, file, text, complaint):
    (copy.parents[1] / "tests" / file).write_text(text)
    code, said = run_here()
    assert code != 0
    assert complaint in said


def test_the_header_compiles_without_a_warning(tmp_path):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    source = tmp_path / "check.c"
    source.write_text(
        f'#include "{HEADER}"\n'
        '_Static_assert(SEGLOG_CQ_UNIT_SIZE == 20 && SEGLOG_CQ_UNIT_TAGS_CODE_AT == 12, "unit");\n'
        '_Static_assert(SEGLOG_MAGIC_V1 == 0xDAA320A7u, "unsigned");\n'
        '_Static_assert(SEGLOG_MAX_EXT_ADDRESS == -2147483649LL, "64 bits");\n'
    )
    done = run(compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-c", source, "-o", tmp_path / "check.o")
    assert (done.returncode, done.stderr) == (0, "")
