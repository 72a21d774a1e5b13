"""Bits of ``sysFlag``: compression, transaction state, address families, batches.

Source: ``MessageSysFlag.java``.
"""

from __future__ import annotations

from typing import Final

COMPRESSED: Final = 0x1
MULTI_TAGS: Final = 0x2
TRANSACTION_MASK: Final = 0xC
"""A value of two bits, not two flags: compare ``sys_flag & TRANSACTION_MASK`` as a whole."""
TRANSACTION_PREPARED: Final = 0x4
TRANSACTION_COMMIT: Final = 0x8
TRANSACTION_ROLLBACK: Final = 0xC
BORN_HOST_V6: Final = 0x10
STORE_HOST_V6: Final = 0x20
NEED_UNWRAP: Final = 0x40
INNER_BATCH: Final = 0x80
COMPRESSION_MASK: Final = 0x700
COMPRESSION_LZ4: Final = 0x100
COMPRESSION_ZSTD: Final = 0x200
COMPRESSION_ZLIB: Final = 0x300


def with_place(sys_flag: int) -> int:
    """Returns flags of a record that has a place in a plain queue; the other bits stay.

    PREPARED becomes no transaction, and ROLLBACK becomes COMMIT: they differ in one bit.
    """
    flags = sys_flag & ~INNER_BATCH
    return flags if takes_queue_offset(flags) else flags & ~TRANSACTION_PREPARED


def takes_queue_offset(sys_flag: int) -> bool:
    """Returns whether such a record has a place in its queue; PREPARED and ROLLBACK records have none."""
    return sys_flag & TRANSACTION_MASK not in (TRANSACTION_PREPARED, TRANSACTION_ROLLBACK)
