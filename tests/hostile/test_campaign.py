"""A store from somebody else costs nothing outside of it, no traceback, and its share of the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import islice

import pytest

from tests.support.hostile.campaign import FULL_PIECES, cases, covering_count, run_piece
from tests.support.hostile.commands import ALL
from tests.support.hostile.kinds import KINDS
from tests.support.hostile.trial import make_bases, run_forked, subject_of
from tests.support.hostile.watching import Watch
from tests.support.scale import scaled

PIECES = scaled(5, FULL_PIECES)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


def test_every_kind_of_file_meets_every_command():
    count = covering_count()
    assert count <= 500
    met = {(kind, name) for case in islice(cases(), count) for kind in case.kinds for name in case.commands}
    assert met == {(kind, name) for kind in KINDS for name in ALL}


def test_a_seed_names_the_same_case_again():
    first, again = (list(islice(cases(), 600)) for _time in range(2))
    assert first == again


@pytest.mark.parametrize("piece", range(PIECES))
def test_hostile_stores_break_no_promise(piece):
    broken = [(trial.seed, trial.done, text) for trial in run_piece(piece) for text in trial.broken]
    assert broken == []


def test_what_is_opened_outside_is_seen(tmp_path):
    (tmp_path / "canary").write_bytes(b"x")
    os.mkfifo(tmp_path / "pipe")
    with Watch(tmp_path) as watch:
        assert watch.seen() == []
        subprocess.run(["cat", tmp_path / "canary"], check=True, capture_output=True)
        assert f"opened {tmp_path}/canary" in watch.seen()
        os.close(os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK))
        assert f"opened {tmp_path}/pipe" in watch.seen()
        (tmp_path / "canary").chmod(0o777)
        (tmp_path / "canary").rename(tmp_path / "moved")
        seen = watch.seen()
    assert f"rights changed {tmp_path}/canary" in seen
    assert f"moved to {tmp_path}/moved" in seen


def test_every_command_runs_on_a_sound_store_as_it_is_meant(tmp_path):
    """Else the campaign would try how commands refuse their words."""
    base = make_bases(tmp_path / "bases")["everyday"]
    ended = {}
    for number, name in enumerate(ALL):
        folder = tmp_path / str(number)
        folder.mkdir()
        said = run_forked(subject_of(base, folder), [name])
        assert said.broken == []
        ended[name] = said.exits
    refused = {name for name, exits in ended.items() if exits not in ([0], [1])}
    assert refused <= {"offsets diff", "offsets restore", "undo", "topic delete", "tx commit"}, ended
