"""One verdict for each group and queue: the first that fits, and none without its evidence."""

from __future__ import annotations

import json

import pytest

from seglog.doctor.check.check import check_store
from seglog.errors import InvalidArgumentError
from seglog.spark.reconcile.facts import load_facts
from seglog.spark.reconcile.queue_verdicts import Earlier, queue_verdicts
from seglog.spark.reconcile.since import load_earlier
from seglog.spark.reconcile.verdicts import QUEUE_VERDICTS
from seglog.storage.format.system_names import DELAY_GROUP
from tests.spark.reconcile.oracle import Oracle
from tests.spark.reconcile.planted import DELAY, HALF, OP, plant
from tests.support.machine.shared import copy_tree
from tests.support.material import golden, rocksdb_stores


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    return [plant(folder / str(seed), seed) for seed in range(5)]


@pytest.fixture(scope="module")
def facts(planted):
    return [load_facts(check_store(one.root)) for one in planted]


def by_hand(planted):
    """Verdicts in plain Python: by store, group, topic and queue."""
    oracle, found = Oracle(planted), {}
    halves = dict.fromkeys(oracle.planted, 0)
    for entry, verdict in oracle.waiting():
        halves[entry.store] += verdict == "uncommitted"
    for store, one in oracle.planted.items():
        ends = {key[1:]: end for key, end in oracle.ends.items() if key[0] == store}
        for (group, topic, queue_id), offset in with_queues_never_come_to(one, ends).items():
            low, high = ends.get((topic, queue_id), (0, 0))
            lag = sum(1 for slot in range(low, high) if offset is None or slot >= offset)
            if topic == HALF:
                lag = halves[store]
            is_orphan = group == "gone" or topic == "vanished"
            verdict = "orphan" if is_orphan else judged(topic, offset, low, high, lag)
            found[store, group, topic, queue_id] = (offset, low, high, lag, verdict)
    return found


def with_queues_never_come_to(one, ends):
    """Returns the offsets of a store, None for queues in which a group has none but might."""
    wanted = dict(one.offsets)
    for queue_id, offset in one.delays.items():
        if (DELAY, queue_id) in ends:
            wanted[DELAY_GROUP, DELAY, queue_id] = offset
    pairs = {(group, topic) for group, topic, _queue_id in wanted}
    pairs |= {(topic.split("%", 2)[2], topic) for topic, _queue_id in ends if topic[0] == "%"}
    for group, topic in pairs:
        for name, queue_id in ends:
            if name == topic:
                wanted.setdefault((group, topic, queue_id), None)
    return wanted


def judged(topic, offset, low, high, lag):
    """Returns the verdict about a group and a topic that are known."""
    if offset is not None and offset > high:
        return "ahead"
    if offset is not None and offset < low:
        return "below-min"
    if lag == 0 or topic in (OP, DELAY):
        return "ok"
    return {"%DLQ%": "dead", "%RETR": "retrying"}.get(topic[:5], "lag")


def test_verdicts_are_those_of_plain_python(planted, facts):
    found = {
        tuple(one.key): (one.offset, one.min_offset, one.max_offset, one.lag, one.verdict)
        for one in queue_verdicts(facts)
    }
    assert found == by_hand(planted)
    assert {row[-1] for row in found.values()} == set(QUEUE_VERDICTS) - {"stalled"}


def test_a_group_stalls_where_it_lags_and_has_not_moved_since(facts):
    now = queue_verdicts(facts)
    of_store = [one for one in now if one.key.store == facts[0].store and one.key.group == "billing"]
    of_group = [one for one in of_store if one.verdict in ("lag", "retrying")]
    earlier = {one.key: Earlier(one.offset, one.lag) for one in of_group}
    later = {one.key: one for one in queue_verdicts(facts, earlier)}
    assert {later[one.key].verdict for one in of_group} == {"stalled"}
    assert {later[one.key].status for one in of_group} == {"STOP"}
    elsewhere = next(one for one in of_store if one not in of_group)
    earlier[elsewhere.key] = Earlier((elsewhere.offset or 0) + 1, 5)
    moved = {one.key: one for one in queue_verdicts(facts, earlier)}
    assert {moved[one.key].status for one in of_group} == {"STALL"}
    caught_up = {one.key: Earlier(one.offset, 0) for one in of_group}
    assert not any(one.verdict == "stalled" for one in queue_verdicts(facts, caught_up))


def test_an_earlier_result_is_read_from_json_lines(facts, tmp_path):
    now = queue_verdicts(facts)
    lines = [json.dumps({"kind": "queue-verdict", **one.fields()}) for one in now]
    path = tmp_path / "earlier.jsonl"
    path.write_text("\n".join([*lines, json.dumps({"kind": "reconcile", "clean": False})]) + "\n")
    assert load_earlier(path) == {one.key: Earlier(one.offset, one.lag) for one in now}


@pytest.mark.parametrize(
    "text", ["no json\n", '{"group": "g"}\n', '{"store":"s","group":"g","topic":"t","queueId":"0","lag":1}\n']
)
def test_what_is_no_earlier_result_is_refused(text, tmp_path):
    path = tmp_path / "other"
    path.write_text(text)
    with pytest.raises(InvalidArgumentError, match="no result of a reconciliation"):
        load_earlier(path)


def test_a_store_without_tables_knows_every_group_and_has_no_rows(tmp_path):
    one = plant(tmp_path / "s", 1)
    for file in (one.root / "config").iterdir():
        file.unlink()
    found = queue_verdicts([load_facts(check_store(one.root))])
    assert {one.verdict for one in found} <= {"lag", "retrying", "dead", "ok"}
    assert all(one.offset is None for one in found)


def test_offsets_that_cannot_be_read_are_said(planted, tmp_path):
    (before,) = planted[:1]
    assert not [text for text in load_facts(check_store(before.root)).unseen if "offsets" in text]
    root = copy_tree(before.root, tmp_path / "cut")
    table = root / "config" / "consumerOffset.json"
    table.with_name(f"{table.name}.bak").unlink(missing_ok=True)
    table.write_bytes(table.read_bytes()[:-9])
    facts = load_facts(check_store(root))
    assert not facts.tables.offsets
    assert any("the offsets of groups" in text and "consumerOffset.json" in text for text in facts.unseen)


def test_offsets_in_rocksdb_are_said_and_a_json_file_beside_them_is_not_believed(tmp_path):
    root = rocksdb_stores.with_tables(tmp_path)
    (root / "config" / "consumerOffset.json").write_text('{"offsetTable":{"EqTopic@g":{0:1}}}')
    facts = load_facts(check_store(root))
    assert not facts.tables.offsets
    (said,) = facts.unseen
    assert "config/rdb" in said


def test_a_loss_that_the_audit_found_is_said(tmp_path):
    root = golden.extract("d-zeropage-first", tmp_path)
    (said,) = load_facts(check_store(root)).unseen
    assert "messages that the store has lost" in said
    assert load_facts(check_store(golden.extract("roll", tmp_path))).unseen == ()
