"""The length that files of a sequence have: names, lengths and contents together decide, or nothing does."""

from __future__ import annotations

import pytest

from seglog.storage.directory.file_facts import Certainty, FileFacts, infer_length, quick_length
from tests.support.rows import every_row

K64 = 64 << 10


def infer(facts, known=None, sequences=()):
    found = infer_length(
        facts,
        unit_bytes=1,
        range_bytes=(4096, (1 << 31) - 1),
        known_bytes=known,
        sole_unit_bytes=4096,
        sequences=sequences,
    )
    return found.size_bytes, found.certainty


def full(first, size, needed=K64 - 100, exact=None):
    return FileFacts(first, size, is_proven=True, needed_bytes=needed, exact_bytes=exact)


CASES = {
    "all cut by one byte": ([full(0, K64 - 1), full(K64, K64 - 1), full(2 * K64, K64 - 1, 0)], K64),
    "all cut in two, records reach further": (
        [full(0, K64 // 2, K64 // 2 + 8), full(K64, K64 // 2, K64 // 2 + 8)],
        K64,
    ),
    "a filler states it": ([full(0, 999, exact=K64)], K64),
    "the middle one is missing": ([full(0, K64, exact=K64), full(2 * K64, K64, 0)], K64),
    "an empty file beside a cut one": ([full(0, K64 - 1, 100), FileFacts(K64, 0)], K64),
    "a spare file of the right length": ([full(0, 5000, 100), FileFacts(K64, K64)], K64),
    "one file after retention": ([full(7 * K64, K64, 100)], K64),
    "the only file was cut to an odd length": ([full(0, 5000, 100)], None),
    "the only file has a usual length": ([full(0, K64, 100)], K64),
    "two lengths, and nothing to choose by": ([full(0, 8192, 100), full(0, 12288, 100)], None),
    "all cut to one length, every gap is longer": (
        [full(0, K64 // 2, 100), full(K64, K64 // 2, 100), full(2 * K64, K64 // 2, 100)],
        None,
    ),
    "a foreign name": ([full(0, K64), full(K64, K64), FileFacts(12345, 12)], K64),
}


def test_length_is_inferred_or_left_open():
    with every_row() as row:
        for name, (facts, size) in CASES.items():
            with row(name):
                assert infer(facts)[0] == size


def test_what_was_written_down_decides_where_contents_do_not_contradict():
    assert infer([full(0, 5000, 100)], known=100_000) == (100_000, Certainty.WRITTEN)
    assert infer([full(0, 5000, 100_001)], known=100_000) == (None, Certainty.UNKNOWN)
    assert infer([full(0, K64, exact=K64)], known=100_000) == (K64, Certainty.PROVEN)


def test_a_foreign_file_copied_over_one_does_not_outvote_the_others():
    others = [full(0, K64), full(K64, K64), full(3 * K64, K64)]
    foreign = FileFacts(2 * K64, 9 * K64, needed_bytes=9 * K64)
    assert infer([*others, foreign], known=K64) == (K64, Certainty.WRITTEN)
    assert infer([*others, foreign]) == (K64, Certainty.PROVEN)
    apart = [full(0, K64), full(6 * K64, K64), foreign]
    assert infer(apart, known=K64) == (K64, Certainty.WRITTEN)
    assert infer(apart) == (None, Certainty.UNKNOWN)  # two of them may have been cut alike
    queues = [[0], [0], [0], [0]]  # the only file of each of four
    alone = [full(0, K64), full(0, K64), full(0, K64), FileFacts(0, 9 * K64, needed_bytes=9 * K64)]
    assert infer(alone, sequences=queues) == (K64, Certainty.PROVEN)
    assert infer(alone[1:], sequences=queues[1:]) == (None, Certainty.UNKNOWN)


@pytest.mark.parametrize(
    ("files", "size"),
    [
        ([(0, K64), (K64, K64)], K64),
        ([(0, K64), (2 * K64, K64)], None),
        ([(0, K64 - 1), (K64, K64 - 1)], None),
        ([(0, K64)], None),
        ([(0, 0), (K64, 0)], None),
    ],
)
def test_files_settle_it_at_once_only_if_names_and_lengths_agree(files, size):
    assert quick_length(files, 1) == size
