"""What a read answers, and the offset at a time, are what the real store answers on a copy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from seglog import MessageStore
from tests.interop.judging.judge import Judge
from tests.interop.judging.questions import SMALL_GEOMETRY, Probe
from tests.interop.judging.writing import write_store
from tests.support.narrow import not_none

pytestmark = pytest.mark.interop

QUEUES = [("Plain", 0), ("Small", 0), ("Big", 1), ("Orders", 0), ("Unknown", 0), ("Plain", 7)]


@pytest.fixture(params=["whole", "first segment gone"])
def twins(request, tmp_path, copied: Callable[[Path], Path]):
    """Two equal directories, one for each engine."""
    ours = tmp_path / "store"
    write_store(ours)
    if request.param != "whole":
        first, *_ = sorted((ours / "commitlog").iterdir())
        first.unlink()
    return ours, copied(ours)


def test_get_answers_as_the_real_store(judge: Judge, twins):
    ours, for_java = twins
    with MessageStore.open(ours) as store:
        probes = [
            Probe(topic=topic, queue_id=queue_id, queue_offset=offset, max_count=count)
            for topic, queue_id in QUEUES
            for offset in offsets_around(store, topic, queue_id)
            for count in (1, 32)
        ]
        answers = []
        for probe in probes:
            result = store.get(probe.topic, probe.queue_id, probe.queue_offset, probe.max_count)
            answers.append(
                {
                    "status": result.status.name,
                    "nextOffset": result.next_offset,
                    "minOffset": result.min_offset,
                    "maxOffset": result.max_offset,
                    "phyOffsets": [message.phy_offset for message in result.messages],
                }
            )
    assert unequal(probes, answers, judge.probe(for_java, probes, SMALL_GEOMETRY)) == []


def offsets_around(store, topic, queue_id):
    low, high = store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)
    return sorted(
        {-1, 0, 1, low - 1, low, low + 1, (low + high) // 2, 99, 100, high - 1, high, high + 1, high + 500}
    )


def test_offset_by_time_is_that_of_the_real_store(judge: Judge, twins):
    ours, for_java = twins
    with MessageStore.open(ours) as store:
        times = sorted({message.store_timestamp_ms for message in store.get("Small", 0, 0, 350).messages})
        around = sorted(
            {time + step for time in [0, *times[:: len(times) // 20 + 1], times[-1]] for step in (-1, 0, 1)}
        )
        probes = [
            Probe(topic=topic, queue_id=queue_id, timestamp_ms=max(0, time), boundary=boundary)
            for topic, queue_id in QUEUES
            for time in [*around, 1 << 42]
            for boundary in ("lower", "upper")
        ]
        answers = [
            {
                "queueOffset": store.offset_by_time(
                    probe.topic, probe.queue_id, not_none(probe.timestamp_ms), probe.boundary
                )
            }
            for probe in probes
        ]
    assert unequal(probes, answers, judge.probe(for_java, probes, SMALL_GEOMETRY)) == []


def unequal(probes, ours, theirs):
    """Returns each probe with both answers where they differ."""
    answers = [{name: value for name, value in line.items() if name != "kind"} for line in theirs]
    return [
        (probe, mine, other)
        for probe, mine, other in zip(probes, ours, answers, strict=True)
        if mine != other
    ]
