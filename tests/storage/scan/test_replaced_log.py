"""A log file of another store in the place of one of these, in stores with queues of every kind."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from seglog.clock import VirtualClock
from seglog.doctor.check.check import check_store
from seglog.doctor.check.triage import verdict_on
from seglog.doctor.repair.repair import plan_repair, repair_store
from seglog.storage.files.files import RealFiles
from seglog.storage.findings.code import Severity
from seglog.storage.overlay import is_message
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from tests.support.material import golden
from tests.support.material.mixed import LMQS, declare, put_inner
from tests.support.material.stores import SMALL_INDEX, AllLengths, copy_store, new_clock

SEGMENT = 65536
LENGTHS: AllLengths = {"segment_size_bytes": SEGMENT, "queue_file_size_bytes": 2000, **SMALL_INDEX}
OTHERS = {"plain": "outerbatch", "further": "roll", "batch": "roll", "each topic in one file": "roll"}
"""A golden store for each of :data:`KINDS`, of other topics."""


def plain(root: Path) -> None:
    with MessageStore.open(root, clock=VirtualClock(1_800_000_000_000), **LENGTHS) as store:
        for number in range(700):
            store.put("T", bytes(number % 300), queue_id=number % 3, keys=f"k{number}")


def further(root: Path) -> None:
    with MessageStore.open(root, clock=VirtualClock(1_800_000_000_000), **LENGTHS) as store:
        for number in range(700):
            asked = {"INNER_MULTI_DISPATCH": LMQS[number % 3]} if number % 4 else {}
            store.put("T", bytes(number % 300), queue_id=number % 2, properties=asked)


def batch(root: Path) -> None:
    declare(root, B={"queue.type": "BatchCQ"})
    with MessageStore.open(root, clock=VirtualClock(1_800_000_000_000), **LENGTHS) as store:
        for number in range(700):
            put_inner(store, number % 4 + 1, bytes(number % 200), queue_id=number % 2)


def one_file_each(root: Path) -> None:
    with MessageStore.open(root, clock=VirtualClock(1_800_000_000_000), **LENGTHS) as store:
        for number in range(700):
            store.put(f"T{number // 90}", bytes(number % 300), queue_id=number % 2, keys=f"k{number}")


KINDS = {"plain": plain, "further": further, "batch": batch, "each topic in one file": one_file_each}


@pytest.fixture(scope="module", params=KINDS)
def kind(request, module_folders):
    root = module_folders.mktemp("kind") / "store"
    KINDS[request.param](root)
    return root, golden.shared(OTHERS[request.param])


def held(root: Path, first: int) -> dict[tuple[str, int], int]:
    """How many messages each queue has in a file of the log."""
    found: dict[tuple[str, int], int] = {}
    seen = survey(root, RealFiles())
    for key, state in seen.all_queues.items():
        units = state.units
        here = (units["phy_offset"] >= first) & (units["phy_offset"] < first + SEGMENT)
        if "batch_size" in (units.dtype.names or ()):
            count = int(units["batch_size"][here].sum())
        else:
            count = int((here & is_message(units)).sum())
        if count:
            found[key] = count
    return found


def exchanged(root: Path, other: Path, number: int, target: Path) -> Path:
    name = f"commitlog/{number * SEGMENT:020d}"
    copy_store(root, target)
    shutil.copyfile(other / name, target / name)
    return target


def last_number(root: Path) -> int:
    return max(int(path.name) for path in (root / "commitlog").iterdir()) // SEGMENT


@pytest.mark.parametrize("number", [0, 1])
def test_each_unit_proves_a_message_that_was_there(kind, number, memory_path: Path):
    root, other = kind
    lost = held(root, number * SEGMENT)
    assert lost
    target = exchanged(root, other, number, memory_path / "store")
    report = check_store(target)
    assert dict(report.messages.lost_of) == lost
    assert verdict_on(report).is_at_least
    (foreign,) = [finding for finding in report.findings if finding.code == "log-file-foreign"]
    assert foreign.file == f"commitlog/{number * SEGMENT:020d}"
    assert foreign.messages == sum(count for (topic, _id), count in lost.items() if "%LMQ%" not in topic)
    assert survey(target, RealFiles()).counts == report.messages
    plan = plan_repair(RealFiles(), target, new_clock())
    assert sum(action.lost_messages for action in plan.actions) == sum(lost.values())
    assert plan.doubt


@pytest.mark.parametrize("way", ["repair", "open"])
@pytest.mark.parametrize("number", [0, 1])
def test_the_loss_is_written_down_and_no_queue_offset_is_given_again(kind, number, way, memory_path: Path):
    root, other = kind
    lost = held(root, number * SEGMENT)
    ends = {key: state.max_offset for key, state in survey(root, RealFiles()).all_queues.items()}
    target = exchanged(root, other, number, memory_path / "store")
    if way == "repair":
        repair_store(RealFiles(), target, new_clock(), lambda _plan: True)
        wrong = [one for one in check_store(target).findings if one.severity is not Severity.NOTE]
        assert {one.code for one in wrong} <= {"seal-rot"}
    for _again in range(2):
        MessageStore.open(target, clock=new_clock()).close()
        report = check_store(target)
        assert dict(report.messages.lost_of) == lost
        assert verdict_on(report).is_at_least
        after = survey(target, RealFiles()).all_queues
        assert {key: after[key].max_offset for key in ends} == ends


def test_a_last_file_counts_up_to_the_end_that_the_log_had(memory_path: Path):
    root = memory_path / "own"
    one_file_each(root)
    number = last_number(root)
    other = golden.shared("roll")
    target = exchanged(root, other, number, memory_path / "store")
    report = check_store(target)
    assert report.messages.lost == sum(held(root, number * SEGMENT).values())


def test_batches_stored_at_another_time_at_the_same_places_may_be_lost(memory_path: Path):
    root = memory_path / "own"
    batch(root)
    other = memory_path / "other"
    declare(other, B={"queue.type": "BatchCQ"})
    with MessageStore.open(other, clock=VirtualClock(1_700_000_000_000), **LENGTHS) as store:
        for number in range(700):
            put_inner(store, number % 4 + 1, bytes(number % 200), queue_id=number % 2)
    target = exchanged(root, other, 1, memory_path / "store")
    report = check_store(target)
    assert "log-file-foreign" in {finding.code for finding in report.findings}
    assert verdict_on(report).is_at_least


def test_exchanged_queue_files_prove_no_loss(memory_path: Path):
    root = memory_path / "own"
    plain(root)
    one, other = (root / "consumequeue" / "T" / name for name in "01")
    held_aside = one.with_name("held")
    one.rename(held_aside)
    other.rename(one)
    held_aside.rename(other)
    report = check_store(root)
    assert report.messages.lost == 0
    assert not verdict_on(report).is_at_least
    assert "log-file-foreign" not in {finding.code for finding in report.findings}


def test_a_flipped_bit_in_a_unit_proves_no_loss(memory_path: Path):
    root = memory_path / "own"
    plain(root)
    for path in sorted((root / "consumequeue" / "T").glob("*/*"))[:4]:
        content = bytearray(path.read_bytes())
        content[20 * 7 + 5] ^= 0x20
        path.write_bytes(content)
    report = check_store(root)
    assert "queue-unit-wrong" in {finding.code for finding in report.findings}
    assert not verdict_on(report).is_at_least
    assert "log-file-foreign" not in {finding.code for finding in report.findings}
