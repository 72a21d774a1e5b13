"""The verdict that a check begins with agrees with what the real store does with the same directory."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from seglog import MessageStore
from seglog.doctor.check import check_store, verdict_on
from seglog.doctor.check.broker_start import Start
from seglog.storage.directory.geometry import FileSizes
from seglog.storage.format.index.index import IndexGeometry
from tests.interop.judging.judge import Judge
from tests.interop.judging.lines import place
from tests.interop.judging.questions import SMALL_GEOMETRY
from tests.interop.judging.states import as_is, crashed, states_of
from tests.support.damage.campaign import KINDS
from tests.support.damage.log_ends import LOG_ENDS
from tests.support.damage.queue_damage import older_queues, slow_store
from tests.support.damage.subjects import make_subject
from tests.support.material import golden
from tests.support.rows import every_row
from tests.support.scale import chance, scaled

pytestmark = pytest.mark.interop

GIVEN = FileSizes(
    SMALL_GEOMETRY.queue_file_size_bytes,
    IndexGeometry(SMALL_GEOMETRY.index_slots, SMALL_GEOMETRY.index_entries),
    SMALL_GEOMETRY.segment_size_bytes,
)
SEEDS = range(scaled(2, 2))
"""Those of each kind of damage that are the same for each commit."""
DRAWN = range(scaled(4, 20))
"""Those that follow from the commit."""
DAMAGED = golden.golden_names(damaged=True)


def hold(judge, root):
    """Holds the verdict on a store against what RocketMQ does with a copy of it, and returns the latter."""
    report = check_store(root, given=GIVEN)
    start = verdict_on(report).start
    dump = judge.dump(root, SMALL_GEOMETRY)
    codes = [(finding.code, finding.file, finding.found) for finding in report.findings]
    said = (start, dump.refusal, codes)
    if start.start is Start.NO:
        assert dump.refusal is not None, said
    elif start.start in {Start.YES, Start.LOSES}:
        assert dump.refusal is None, said
        assert dump.store["maxPhyOffset"] == start.end_phy_offset, said
    return dump


@pytest.mark.parametrize("name", DAMAGED)
def test_the_verdict_on_a_damaged_store_of_rocketmq_is_what_rocketmq_does(judge: Judge, tmp_path, name):
    with every_row() as row:
        for state in states_of(name, DAMAGED, [as_is, crashed], in_all=3):
            with row(state.__name__):
                folder = tmp_path / state.__name__
                folder.mkdir()
                root = golden.extract(name, folder)
                state(root)
                hold(judge, root)


@pytest.mark.parametrize("name", ["roll", "roll-halt"])
def test_the_end_of_the_log_in_a_verdict_is_where_rocketmq_ends_it(
    judge: Judge, tmp_path, copied: Callable[[Path], Path], name
):
    whole = golden.extract(name, tmp_path)
    with every_row() as row:
        for what, one in LOG_ENDS.items():
            with row(what):
                root = copied(whole)
                one.damage(root)
                dump = hold(judge, root)
                assert dump.store["maxPhyOffset"] == (one.closed if name == "roll" else one.halted)


@pytest.mark.parametrize("name", ["roll", "roll-halt"])
def test_the_verdict_on_random_damage_is_what_rocketmq_does(judge: Judge, tmp_path, name):
    subject = make_subject(name, tmp_path)
    with every_row() as row:
        for kind in KINDS:
            draws = [(f"fixed {seed}", random.Random(f"{name} {kind} {seed}")) for seed in SEEDS]
            draws += [(f"drawn {seed}", chance("verdict", name, kind, seed)) for seed in DRAWN]
            for seed, drawn in draws:
                root = tmp_path / f"damaged-{kind}-{seed}".replace(" ", "-")
                shutil.copytree(subject.root, root)
                with row(seed, KINDS[kind](subject, root, drawn)):
                    hold(judge, root)


@pytest.mark.parametrize("is_flushed", [False, True])
def test_the_verdict_on_older_queue_files_of_a_crashed_store_says_what_rocketmq_does_not_serve(
    judge: Judge, tmp_path, copied: Callable[[Path], Path], is_flushed
):
    whole = slow_store(tmp_path / "whole")
    (whole / "abort").write_bytes(b"")
    if not is_flushed:
        (whole / "checkpoint").unlink()  # RocketMQ then walks the log from its first file on
    expected = {place(one) for one in judge.dump(copied(whole), SMALL_GEOMETRY).of_kind("msg")}
    harmed = []
    with every_row() as row:
        for kept in (0.3, 0.6, 0.99):
            with row(kept):
                root = copied(whole)
                older_queues(root, kept)
                verdict = verdict_on(check_store(root, given=GIVEN))
                dump = hold(judge, root)
                lacking = len(expected - {place(one) for one in dump.of_kind("msg")})
                assert (f"lack {lacking:,} messages" in verdict.do_not) == bool(lacking)
                assert bool(verdict.do_not) == bool(lacking)
                harmed.append(bool(lacking))
    assert harmed == [is_flushed, is_flushed, False]


ELSEWHERE = [
    (8, 4, False), (12, 40, True), (12, 8, True), (20, 16, True), (21, 100, False), (28, 8, False),
    (28, 9, False), (28, 56, True), (28, 60, False), (32, 8, True), (36, 4, True), (56, 8, False),
]  # fmt: skip
"""Where in a record how many bytes become others; random ones, or zeros."""


def test_the_verdict_on_a_record_that_says_another_place_and_more_is_what_rocketmq_does(
    judge: Judge, tmp_path, copied: Callable[[Path], Path]
):
    whole = golden.extract("roll", tmp_path)
    with MessageStore.open(whole, read_only=True) as store:
        places = [
            message.phy_offset
            for queue in store.queues()
            for message in store.get(queue.topic, queue.queue_id, 0, 1_000)
        ]
    last = max((whole / "commitlog").iterdir()).name
    inside = sorted(place for place in places if place > int(last))
    with every_row() as row:
        for at, size, is_random in ELSEWHERE:
            with row(at, size, is_random):
                root = copied(whole)
                path = root / "commitlog" / last
                data = bytearray(path.read_bytes())
                start = inside[len(inside) // 2] - int(last) + at
                drawn = random.Random(f"{at} {size}")
                data[start : start + size] = drawn.randbytes(size) if is_random else bytes(size)
                path.write_bytes(data)
                hold(judge, root)
