"""Both kernels sum blocks alike."""

from __future__ import annotations

import random

import pytest

from seglog.storage.format.ours.seal import SEAL_BLOCK_BYTES, checksum
from seglog.storage.kernels.block_sums import block_checksums
from tests.support.machine.kernels import native
from tests.support.rows import every_row

NOISE = random.Random(7).randbytes(5 * SEAL_BLOCK_BYTES + 13)


def test_every_block_has_its_sum_and_the_last_may_be_short(kernels: str):
    with every_row() as row:
        for blocks in (0, 1, 2, 3, 5):
            for more in (0, 1, 7, 8, 13):
                chunk = memoryview(NOISE)[: blocks * SEAL_BLOCK_BYTES + more]
                pieces = [chunk[at : at + SEAL_BLOCK_BYTES] for at in range(0, len(chunk), SEAL_BLOCK_BYTES)]
                with row(blocks, more):
                    assert block_checksums(chunk) == [checksum(piece) for piece in pieces]


@pytest.mark.parametrize("block_bytes", [1, 7, 8, 24, 1000])
def test_blocks_may_have_any_size(block_bytes):
    data = NOISE[:5003]
    sums = native().block_sums(memoryview(data), block_bytes)
    if sums is None:
        pytest.skip("the CPU has no instruction for it")
    assert sums == [checksum(data[at : at + block_bytes]) for at in range(0, len(data), block_bytes)]


@pytest.mark.parametrize("block_bytes", [0, -1])
def test_a_block_of_nothing_is_refused(block_bytes):
    with pytest.raises(ValueError, match="some bytes"):
        native().block_sums(memoryview(b"x"), block_bytes)
