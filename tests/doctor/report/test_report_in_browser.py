"""The page of a report as a real browser shows it, light and dark: headless Chromium, where there is one."""

from __future__ import annotations

import shutil
import struct
import subprocess
import zlib

import pytest

from seglog.doctor.check.check import check_store
from seglog.doctor.report.html_report import render_report
from tests.support.machine.patience import patience_s
from tests.support.material import golden

LIGHT, DARK = (255, 255, 255), (0x14, 0x17, 0x1A)
NOW_MS = 1_800_000_000_000


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Opens a page and returns what the browser says, or fails."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("no Chromium is installed (Debian: apt-get install chromium)")
    profile = tmp_path_factory.mktemp("profile")

    def run(page, *options):
        done = subprocess.run(
            [
                program,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--window-size=1100,1400",
                f"--user-data-dir={profile}",
                *options,
                page.as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=patience_s(120),
            check=True,
        )
        return done.stdout, done.stderr

    return run


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    report = check_store(golden.extract("d-zeropage-last", folder))
    file = folder / "page.html"
    file.write_text(render_report(report, NOW_MS), encoding="utf-8")
    return file


def top_left(png):
    """The colour of the first pixel: in the first row every filter of PNG leaves it as it is."""
    content, at, packed = png.read_bytes(), 8, b""
    while at < len(content):
        size, kind = struct.unpack_from(">I4s", content, at)
        packed += content[at + 8 : at + 8 + size] if kind == b"IDAT" else b""
        at += size + 12
    return tuple(zlib.decompress(packed)[1:4])


@pytest.mark.slow
def test_a_browser_reads_all_parts_and_complains_of_nothing(browser, page):
    seen, errors = browser(page, "--dump-dom", "--enable-logging=stderr", "--v=0")
    for part in ("Map of the commit log", "Writes over time", "Size by topic", "Lag by group", "log-hole"):
        assert part in seen
    assert seen.count('class="lost"') >= 1
    assert "Refused to" not in errors
    assert "CONSOLE" not in errors


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "colour"), [(1, LIGHT), (0, DARK)])
def test_the_page_follows_light_and_dark(browser, page, tmp_path, scheme, colour):
    shot = tmp_path / "shot.png"
    browser(page, f"--screenshot={shot}", f"--blink-settings=preferredColorScheme={scheme}")
    assert top_left(shot) == colour
    assert shot.stat().st_size > 20_000
