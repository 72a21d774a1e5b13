"""What is written from tables in the code, for people and for C, says what the code says."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "seglog" / "storage" / "kernels" / "layout.h"


def run(*command, **options):
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, **options)


def test_pages_and_header_are_up_to_date():
    done = run(sys.executable, ROOT / "tools" / "render-docs", "--check", stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_stale_page_is_named(tmp_path):
    copy = tmp_path / "tools" / "render-docs"
    copy.parent.mkdir()
    copy.write_bytes((ROOT / "tools" / "render-docs").read_bytes())
    done = run(sys.executable, copy, "--check", cwd=ROOT, env={"PYTHONPATH": str(ROOT)})
    assert done.returncode == 1
    assert "docs/FORMAT.md is out of date; run: make docs" in done.stderr
    assert "layout.h is out of date" in done.stderr


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
