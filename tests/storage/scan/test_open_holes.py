"""Holes, and lost ends, that are larger than queue units explain: more may be lost than anything counts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from seglog.doctor.check.check import check_store
from seglog.doctor.check.triage import verdict_on
from seglog.doctor.repair.repair import plan_repair, repair_store
from seglog.storage.files.files import RealFiles
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from tests.support.material import golden
from tests.support.material.stores import new_clock

SEGMENT = 65536


def with_hole(folder: Path) -> Path:
    """A store with zeros over some whole records in the middle of its log."""
    root = golden.extract("roll", folder)
    places = survey(root, RealFiles()).rows["phy_offset"]
    here = places[(places >= SEGMENT) & (places < 2 * SEGMENT)].tolist()
    with (root / "commitlog" / f"{SEGMENT:020d}").open("r+b") as file:
        file.seek(here[20] - SEGMENT)
        file.write(bytes(here[45] - here[20]))
    return root


def without_file(folder: Path) -> Path:
    root = golden.extract("roll", folder)
    (root / "commitlog" / f"{SEGMENT:020d}").unlink()
    return root


def without_end(folder: Path) -> Path:
    root = golden.extract("roll", folder)
    path = max((root / "commitlog").iterdir())
    path.write_bytes(path.read_bytes()[:10_000].ljust(SEGMENT, b"\0"))
    return root


DAMAGES = {"records": with_hole, "file": without_file, "end": without_end}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_units_explain_without_a_rest_is_all(damage, memory_path: Path):
    verdict = verdict_on(check_store(DAMAGES[damage](memory_path)))
    assert verdict.lost
    assert not verdict.is_at_least


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("way", ["repair", "open"])
def test_without_the_units_of_a_queue_there_may_be_more(damage, way, memory_path: Path):
    root = DAMAGES[damage](memory_path)
    whole = verdict_on(check_store(root)).lost
    shutil.rmtree(root / "consumequeue" / "TopicA" / "1")
    verdict = verdict_on(check_store(root))
    assert verdict.is_at_least
    assert (verdict.lost or 0) <= (whole or 0)
    assert plan_repair(RealFiles(), root, new_clock()).doubt
    if way == "repair":
        repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    MessageStore.open(root, clock=new_clock()).close()
    assert verdict_on(check_store(root)).is_at_least
