"""RocketMQ opens stores of the damage campaign once they are repaired, and serves what was intact."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from seglog import MessageStore
from seglog.doctor.repair.repair import repair_store
from seglog.storage.files.files import RealFiles
from tests.interop.judging.judge import Judge
from tests.interop.judging.lines import differences, place
from tests.interop.judging.questions import SMALL_GEOMETRY, Geometry
from tests.interop.judging.states import as_is, bare, crashed
from tests.interop.released.untouched import record_bytes
from tests.interop.repaired.test_repaired import ends
from tests.support.damage.subjects import SUBJECTS, make_subject
from tests.support.damage.trial import KIND_NAMES, Patient, damage, is_all_gone
from tests.support.material.stores import QUEUE_FILE_BYTES, SEGMENT_BYTES, new_clock
from tests.support.scale import scaled

pytestmark = pytest.mark.interop

OWN = Geometry(SEGMENT_BYTES, QUEUE_FILE_BYTES, 50, 200)
GEOMETRIES = {
    "roll": SMALL_GEOMETRY,
    "propcrc": SMALL_GEOMETRY,
    "real-conf": Geometry(1 << 20, 2000, 100, 400),
}
CONFIGS: dict[str, dict[str, Any]] = {
    "own of every kind": {
        "topics": {"Batches": {"queue.type": "BatchCQ"}, "Compacted": {"cleanup.policy": "COMPACTION"}},
        "compactionMappedFileSize": 4000,
        "compactionCqMappedFileSize": 460,
        "mapperFileSizeBatchConsumeQueue": 460,
        "enableLmq": True,
        "enableMultiDispatch": True,
    },
    "real-conf": {"enableConsumeQueueExt": True, "mappedFileSizeConsumeQueueExt": 200},
}
ROUNDS = scaled(1, 20)


@pytest.fixture(scope="module", params=SUBJECTS)
def patient(request, tmp_path_factory):
    return Patient.of(request.param, make_subject(request.param, tmp_path_factory.mktemp("subject")))


def dumped(judge, name, root):
    dump = judge.dump(root, GEOMETRIES.get(name, OWN), **CONFIGS.get(name, {}))
    assert dump.refusal is None
    return dump


def repaired(patient, root):
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True, patient.subject.sizes)
    return root


@pytest.fixture(scope="module")
def whole(judge: Judge, patient, tmp_path_factory):
    """What the real store serves of the undamaged store; a repair of that one closes it, if anything."""
    root = tmp_path_factory.mktemp("whole") / "store"
    shutil.copytree(patient.subject.root, root)
    return dumped(judge, patient.name, repaired(patient, root)).lines


def records(patient, root, lines):
    return record_bytes(root, lines, patient.subject.segment_size_bytes)


@pytest.mark.parametrize("patient", ["own of every kind"], indirect=True)
@pytest.mark.parametrize("state", [as_is, crashed, bare])
@pytest.mark.sampled(1)
def test_a_hole_of_batches_whose_queue_is_lost_moves_no_other_offset(
    judge: Judge, patient, whole, state, tmp_path
):
    root = tmp_path / "copy"
    shutil.copytree(patient.subject.root, root)
    messages = [line for line in whole if line["kind"] == "msg"]
    before = records(patient, root, messages)
    for line in [line for line in messages if line["cqTopic"] == "Batches"][5:8]:
        position = line["cqPos"] % SEGMENT_BYTES
        path = root / "commitlog" / f"{line['cqPos'] - position:020d}"
        content = bytearray(path.read_bytes())
        content[position : position + line["cqSize"]] = bytes(line["cqSize"])
        path.write_bytes(content)
    shutil.rmtree(root / "batchconsumequeue")
    after = records(patient, root, messages)
    plan, _pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True, patient.subject.sizes)
    told = {str(one) for action in plan.actions for one in action.lost}
    assert told == {"Batches/0 15..23?"}, "any of three holes may have held them"
    state(root)
    dump = dumped(judge, patient.name, root)
    assert ends(dump.lines) == ends(whole)
    served = {place(line): line for line in dump.of_kind("msg")}
    intact = [line for line in messages if before[place(line)] == after[place(line)]]
    assert differences(intact, [served[place(line)] for line in intact], ignoring=["keyFound"]) == []


@pytest.mark.parametrize("number", range(ROUNDS))
@pytest.mark.parametrize("kind", KIND_NAMES)
@pytest.mark.sampled(18)
def test_real_store_serves_what_a_damage_did_not_hit(judge: Judge, patient, whole, kind, number, tmp_path):
    seed = KIND_NAMES.index(kind) + len(KIND_NAMES) * number
    root = tmp_path / "copy"
    _kind, outcome = damage(patient, root, seed)
    if is_all_gone(patient.subject, root):
        plan, pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True, patient.subject.sizes)
        assert (plan.changes, pack) == ([], None), "nothing is left that a repair could go by"
        assert plan.left
        return
    messages = [line for line in whole if line["kind"] == "msg"]
    before, after = (records(patient, each, messages) for each in (patient.subject.root, root))
    repaired(patient, root)
    with MessageStore.open(root, read_only=True, clock=new_clock()) as store:
        start = store.min_phy_offset
    crashed(root) if number % 2 else as_is(root)
    dump = dumped(judge, patient.name, root)
    assert ends(dump.lines) == ends(whole), outcome.damage
    intact = [
        line for line in messages if before[place(line)] == after[place(line)] and line["cqPos"] >= start
    ]
    served = {place(line): line for line in dump.of_kind("msg")}
    assert {place(line) for line in intact} <= served.keys(), outcome.damage
    found = [served[place(line)] for line in intact]
    assert differences(intact, found, ignoring=["keyFound"]) == [], outcome.damage
