"""A damaged store that we recovered is one that RocketMQ serves whole: all that is intact, nothing twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from seglog import MessageStore
from seglog.storage.files.files import RealFiles
from seglog.storage.findings.code import Severity
from seglog.storage.survey.store_survey import survey
from tests.interop.judging.judge import Judge
from tests.interop.judging.lines import differences, message_line, place
from tests.interop.judging.questions import SMALL_GEOMETRY, JavaMessages
from tests.interop.judging.states import crashed, states_of
from tests.support.material import golden
from tests.support.rows import every_row

pytestmark = pytest.mark.interop

RECOVERED = {
    "d-trunclast": 32,
    "d-zerotail": 3,
    "d-zerotail-halt": 3,
    "d-zeropage-last": 11,
    "d-zeropage-last-halt": 11,
    "d-bodyflip-last": 0,
    "d-magic": 0,
}
"""name: how many messages the damage took; one flipped bit, and a magic, are put right."""


def readable(store):
    """Returns the lines of all messages that can be read; what was lost is stepped over."""
    lines = []
    for queue in store.queues():
        at = queue.min_offset
        while at < queue.max_offset:
            result = store.get(queue.topic, queue.queue_id, at)
            lines += [message_line(message) for message in result]
            assert result.next_offset > at
            at = result.next_offset
    return lines


def ends(lines):
    return {(line["topic"], line["queueId"]): line["maxOffset"] for line in lines if line["kind"] == "queue"}


@pytest.mark.parametrize(("name", "lost"), RECOVERED.items())
def test_real_store_serves_what_recovery_left(
    judge: Judge, tmp_path, copied: Callable[[Path], Path], name, lost
):
    root = golden.extract(name, tmp_path)
    whole = golden.expected("roll-halt" if name.endswith("-halt") else "roll")
    with MessageStore.open(root, create=False) as store:
        ours = readable(store)
        end = store.max_phy_offset
        assert {(queue.topic, queue.queue_id): queue.max_offset for queue in store.queues()} == ends(whole)
    assert len(ours) == len([line for line in whole if line["kind"] == "msg"]) - lost

    with every_row() as row:
        for state in states_of(name, RECOVERED, in_all=1):
            with row(state.__name__):
                for_java = copied(root)
                state(for_java)
                check_with_java(judge, for_java, ours, whole, end, lost)


def check_with_java(judge, root, ours, whole, end, lost):
    """Lets the real store serve a recovered copy, and append to it; both engines have all of it then."""
    dump = judge.dump(root, SMALL_GEOMETRY)
    assert dump.refusal is None
    assert dump.store["maxPhyOffset"] == end
    assert ends(dump.lines) == ends(whole)
    intact = {place(line) for line in ours}
    served = [line for line in dump.of_kind("msg") if place(line) in intact]
    stones = [line for line in dump.of_kind("msg") if place(line) not in intact]
    assert differences(ours, served) == []
    assert len(stones) == lost
    assert {line["properties"].get("SEGLOG_LOST") for line in stones} == ({"1"} if lost else set())

    queues = sorted(ends(whole))
    asked = [JavaMessages(topic=topic, queue_id=queue_id, count=3) for topic, queue_id in queues]
    judge.append(root, asked, SMALL_GEOMETRY)
    with MessageStore.open(root) as store:
        assert [f for f in store.recovery.findings if f.severity is not Severity.NOTE] == []
        for topic, queue_id in queues:
            assert store.max_offset(topic, queue_id) == ends(whole)[topic, queue_id] + 3
        after = {place(line): line for line in readable(store)}
    assert differences(ours, [after[place(line)] for line in ours]) == []
    assert len(after) == len(ours) + 3 * len(queues)


def test_hole_of_an_earlier_file_costs_nothing_after_a_clean_stop(
    judge: Judge, tmp_path, copied: Callable[[Path], Path]
):
    root = golden.extract("d-zeropage-first", tmp_path)
    with MessageStore.open(root, create=False) as store:
        ours = readable(store)
        end = store.max_phy_offset
    assert [finding.code for finding in survey(root, RealFiles()).findings] == ["log-hole"]
    after_crash = copied(root)
    crashed(after_crash)
    dump = judge.dump(root, SMALL_GEOMETRY)
    assert dump.store["maxPhyOffset"] == end
    served = {place(line): line for line in dump.of_kind("msg")}
    assert differences(ours, [served[place(line)] for line in ours]) == []
    # After another crash it cuts the log there: docs/RECOVERY.md says what to do first.
    assert judge.dump(after_crash, SMALL_GEOMETRY).store["maxPhyOffset"] < end / 2
