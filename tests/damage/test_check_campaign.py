"""Random damage to five stores is seen by a check, but for what no checksum covers, which is counted."""

from __future__ import annotations

import random
import shutil
from collections import Counter

import pytest

from seglog.doctor.check import check_store
from seglog.storage.store import MessageStore
from tests.support import golden
from tests.support.campaign import KINDS, read_records
from tests.support.scale import scaled
from tests.support.stores import new_clock
from tests.support.subjects import SUBJECTS, make_subject

EACH = scaled(40, 4000)
WITH_RECORD_CRC = {"own with record CRC", "propcrc"}


@pytest.fixture(scope="module", params=SUBJECTS)
def subject(request, tmp_path_factory):
    return request.param, make_subject(request.param, tmp_path_factory.mktemp("checked"))


def served(root):
    with MessageStore.open(root, read_only=True, clock=new_clock()) as store:
        return read_records(store)


def said(report):
    """What a report says, that the front of the log is out of sight too: those files may be retention's."""
    codes = {(finding.code, finding.file, finding.position_bytes) for finding in report.findings}
    return codes, max(0, report.min_phy_offset)


def test_what_a_check_does_not_see_is_what_no_checksum_covers(
    subject, memory_path, request, record_testsuite_property
):
    name, whole = subject
    usual, truth = said(check_store(whole.root)), served(whole.root)
    tally, harmful = Counter(), []
    for seed in range(EACH):
        copy = memory_path / str(seed)
        shutil.copytree(whole.root, copy)
        chance = random.Random(seed)
        what = KINDS[chance.choice(sorted(KINDS))](whole, copy, chance)
        changed = golden.file_digest(copy) != golden.file_digest(whole.root)
        seen = said(check_store(copy)) != usual
        tally["damages"] += 1
        tally["changed nothing"] += not changed
        tally["seen"] += seen
        if changed and not seen:
            tally["unseen"] += 1
            if served(copy) != truth:
                tally["unseen and served otherwise"] += 1
                harmful.append((seed, what))
        shutil.rmtree(copy)
    for key, count in tally.items():
        record_testsuite_property(f"{request.node.name}: {key}", count)
    assert name not in WITH_RECORD_CRC or harmful == []
    assert len(harmful) <= 0.1 * EACH
