"""The same random requests to our broker and to the real ones: the same codes, offsets and messages.

What differs on purpose is in ``differences.py``; each row shows here. A failure names the seed, the step and
what was asked, and ends with the line that repeats it. ``--full`` asks as much as
``tools/broker-campaign --full``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from seglog.broker.settings.releases import RELEASES
from tests.interop.judging.differences import DIFFERENCES, is_left_out
from tests.interop.judging.differential import (
    FULL_SEQUENCES,
    FULL_STEPS,
    DifferenceError,
    Differential,
    command_of,
    differing_fields,
    seed_of,
)
from tests.interop.judging.judge import Judge
from tests.interop.judging.requests import clone, commit, make_group, pull, query, reset, send
from tests.interop.judging.sequences import Step
from tests.support.machine.patience import patience_s
from tests.support.scale import commit_seed, scaled

pytestmark = pytest.mark.interop

ROOT = Path(__file__).parents[3]
FIXED_SEEDS = range(1, 13)
OF_THE_COMMIT = scaled(6, FULL_SEQUENCES)
STEPS = scaled(200, FULL_STEPS)
STEPS_TO_DIFFER = 200
"""In so many steps some sequence comes to what the releases do otherwise."""


@pytest.fixture(scope="module", params=RELEASES)
def differential(request, judge: Judge, tmp_path_factory):
    """Both brokers of one release after the other."""
    with Judge(request.param) as of_release:
        of_release.build()
        with Differential(request.param, tmp_path_factory.mktemp("alike"), of_release) as both:
            yield both


@pytest.mark.parametrize("seed", FIXED_SEEDS)
def test_random_requests_are_answered_alike(differential, seed):
    differential.run(seed, STEPS)


@pytest.mark.parametrize("number", range(OF_THE_COMMIT))
def test_finding_11_of_the_broker_random_requests_of_the_day_are_answered_alike(differential, number):
    differential.run(seed_of(commit_seed(), number), STEPS)


def test_what_differs_on_purpose_differs_as_its_row_says_and_nothing_else_does(differential):
    try:
        for number, row in enumerate(DIFFERENCES):
            _show(row, differential, differential.pair.bases(number))
    finally:
        differential.begin_anew()  # the two hold different things by now


def _show(row, differential, bases):
    pair, places, is_apart = differential.pair, bases, False
    requests, ours, theirs, differing = [], {}, {}, []
    for shown in row.shown_by:
        assert is_apart or not differing, row.name
        requests = [shown(place) if callable(shown) else shown for place in places]
        is_apart |= is_left_out(requests[0], pair.ours) is row
        ours, theirs = pair.ask_each(*requests, bases)
        differing = differing_fields(requests[0], ours, theirs)
        if "msgId" in ours and "msgId" in theirs:
            places = [base + answer["msgId"][-1] for base, answer in zip(bases, (ours, theirs), strict=True)]
    last = requests[0]
    there = row.there if row.is_in(differential.release) else row.here
    assert (row.looks_at(ours), row.looks_at(theirs)) == (row.here, there), row.name
    if row.leads_apart is None:
        assert differing == [], row.name
        for field in ours.keys() - set(row.fields):
            assert differing_fields(last, {**ours, field: "another"}, theirs), (row.name, field)


def test_offsets_that_are_cloned_while_a_reset_is_pending_count_once_it_was_sent(differential):
    pair, topic, source, target = differential.pair, "cloned", "clone-source", "clone-target"
    asked = [
        *(make_group(group) for group in (source, target)),
        *(send(topic) for _ in range(9)),
        commit(source, topic, 5),
        reset(target, topic, 8),
        clone(source, target, topic),
        query(target, topic),
        pull(target, topic, 2),
        query(target, topic),
    ]
    bases = pair.bases(0)
    answers = [pair.ask(Step("c1", request), bases) for request in asked]
    for request, (ours, theirs) in zip(asked, answers, strict=True):
        assert not differing_fields(request, ours, theirs)
    *_, first, told, second = (ours for ours, _theirs in answers)
    assert (first["offset"], told["remark"], told["nextBeginOffset"]) == ("8", "OFFSET_RESET", "8")
    assert second["offset"] == "5"


def test_a_difference_is_seen_and_said_with_the_line_that_repeats_it(judge: Judge, tmp_path):
    # One of the two has deleted groups back, the other has not.
    another = "5.4.0" if judge.version == "5.5.0" else "5.5.0"
    with Differential(another, tmp_path, judge) as both:
        failures = ((seed, error) for seed in FIXED_SEEDS if (error := _failure(both, seed)) is not None)
        seed, error = next(failures)
        assert error.__notes__ == [f"to repeat: {command_of(another, seed, STEPS_TO_DIFFER)}"]
        assert str(_failure(both, seed)) == str(error), "the brokers started over"


def _failure(both, seed):
    try:
        both.run(seed, STEPS_TO_DIFFER)
    except DifferenceError as error:
        return error
    return None


def test_the_line_that_repeats_a_sequence_runs(judge: Judge):
    _python, *command = command_of(judge.version, 1, 50).split()
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=patience_s(120),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{judge.version}: 1 sequences, 0 failed, ")
