"""A store from a stranger costs nothing outside of it, no traceback, and its share of the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context

import pytest

from tests.support.hostile.campaign import FULL_PIECES, cases, covering_count, run_piece
from tests.support.hostile.commands import ALL
from tests.support.hostile.kinds import KINDS
from tests.support.hostile.trial import run_on_sound_store
from tests.support.hostile.watching import Watch
from tests.support.scale import is_full

PIECES = FULL_PIECES if is_full() else 5

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


def test_every_kind_of_file_meets_every_command():
    count = covering_count()
    assert count <= 520
    met = {(kind, name) for case in islice(cases(), count) for kind in case.kinds for name in case.commands}
    assert met == {(kind, name) for kind in KINDS for name in ALL}


def test_a_seed_names_the_same_case_again():
    first, again = (list(islice(cases(), 600)) for _time in range(2))
    assert first == again


def in_new_process(function, *arguments):
    """Calls a function in a process of its own: trials fork, which other threads make unsafe."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("piece", range(PIECES))
def test_hostile_stores_break_no_promise(piece):
    tried = in_new_process(run_piece, piece)
    assert [(trial.seed, trial.done, text) for trial in tried for text in trial.broken] == []


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
    ended = in_new_process(run_on_sound_store, tmp_path)
    assert [said.broken for said in ended.values() if said.broken] == []
    refused = {name for name, said in ended.items() if said.exits not in ([0], [1])}
    assert refused <= {"undo", "topic delete", "topic delete --apply"}, ended  # the topic has messages
