"""The exit code of a look at a store follows from the worst that was found."""

from __future__ import annotations

import pytest

from seglog.errors import Ending
from seglog.storage.findings import Finding, ending_of
from tests.support.rows import every_row

NOTE, WARNING, LOSS = "tombstones", "queue-short", "log-hole"


ENDINGS = (
    ([], False, Ending.CLEAN),
    ([], True, Ending.CLEAN),
    ([NOTE], False, Ending.CLEAN),
    ([NOTE], True, Ending.NOTES),
    ([NOTE, WARNING], True, Ending.FINDINGS),
    ([WARNING], False, Ending.FINDINGS),
    ([LOSS, WARNING, NOTE], False, Ending.LOSS),
    ([LOSS], True, Ending.LOSS),
)


def test_the_worst_finding_decides():
    with every_row() as row:
        for codes, is_strict, ending in ENDINGS:
            with row(codes, is_strict, ending):
                assert (
                    ending_of([Finding(code, "commitlog/0") for code in codes], is_strict=is_strict) is ending
                )


@pytest.mark.parametrize("code", ["record-repairable", "attic-record"])
def test_a_record_that_a_repair_brings_back_is_no_loss(code):
    assert ending_of([Finding(code, "commitlog/0", messages=1)]) is Ending.FINDINGS
