"""What our broker does otherwise than RocketMQ on purpose: each row of the table shows.

The real broker is asked in ``tests/interop/brokers/test_broker_alike.py``.
"""

from __future__ import annotations

from collections import Counter

import pytest

from seglog.broker.settings.releases import NEWEST_RELEASE
from tests.interop.judging.alike import essence
from tests.interop.judging.differences import DIFFERENCES, is_left_out
from tests.interop.judging.differential import ask_ours, open_ours
from tests.interop.judging.sequences import Sequence
from tests.support.scale import is_gate


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with open_ours(tmp_path_factory.mktemp("ours"), NEWEST_RELEASE) as opened:
        yield opened


def row_id(row):
    return row.name


@pytest.mark.parametrize("row", DIFFERENCES, ids=row_id)
def test_finding_7_of_the_broker_our_answer_is_that_of_the_row(broker, row):
    is_apart = False
    answers = []
    place = 0
    for shown in row.shown_by:
        request = shown(place) if callable(shown) else shown
        is_apart |= is_left_out(request, broker) is row
        answers.append(essence(request, ask_ours(broker, request)))
        place = answers[-1].get("msgId", [place])[-1]
    assert row.looks_at(answers[-1]) == row.here != row.there
    assert is_apart == (row.leads_apart is not None)


def test_a_row_says_what_of_the_answer_differs_or_when_the_brokers_would_go_apart():
    assert len({row.name for row in DIFFERENCES}) == len(DIFFERENCES)
    for row in DIFFERENCES:
        assert (row.leads_apart is None) == bool(row.fields) == (row.holds is not None), row.name


def test_sequences_draw_every_row_that_they_leave_out(broker):
    apart = {row.name: row.is_drawn for row in DIFFERENCES if row.leads_apart is not None}
    drawn = {name for name, is_drawn in apart.items() if is_drawn}
    left_out = Counter()
    for seed in range(1, 31):
        if is_gate() and left_out.keys() == drawn:
            break
        sequence = Sequence(seed, broker)
        for _ in range(200):
            client, request = sequence.next()
            assert is_left_out(request, broker) is None
            ask_ours(broker, request, client)
        left_out += sequence.left_out
    assert left_out.keys() == drawn
