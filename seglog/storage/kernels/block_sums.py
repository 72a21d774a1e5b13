"""CRC-32C of the blocks of a stretch of a file, as seals have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from seglog.storage.format.ours.seal import SEAL_BLOCK_BYTES, checksum
from seglog.storage.kernels import KERNELS, NATIVE

NativeBlockSums: TypeAlias = Callable[[memoryview, int], list[int] | None]

native_block_sums: NativeBlockSums | None = None
if KERNELS == NATIVE:
    from seglog.storage.kernels import _native

    native_block_sums = _native.block_sums


def block_checksums(chunk: memoryview) -> list[int]:
    """Returns the CRC-32C of every block of bytes that begin at a block's start; the last may be shorter."""
    found = None if native_block_sums is None else native_block_sums(chunk, SEAL_BLOCK_BYTES)
    if found is not None:
        return found
    return [checksum(chunk[at : at + SEAL_BLOCK_BYTES]) for at in range(0, len(chunk), SEAL_BLOCK_BYTES)]
