"""The kernels in C, made of ``native/``. All let go of the GIL while they run for long."""

from collections.abc import Callable

CRC32_WAY: str
"""How checksums of messages of some length are computed: ``multiply`` (carry-less) or ``table``."""

def crc32(data: bytes | bytearray | memoryview, /) -> int:
    """Returns what ``zlib.crc32`` does."""

def crc32_by_table(data: bytes | bytearray | memoryview, /) -> int:
    """Returns the same in the way of CPUs without carry-less multiplication."""

def walk(
    buffer: memoryview, phy_offset: int, verify: bool, number: Callable[[bytes, int], int], /
) -> tuple[bytes, list[int], int]:
    """Walks records from the start of the buffer as far as they are whole and right.

    Args:
        buffer: A stretch of one segment that starts with a record.
        phy_offset: Physical offset of its first byte.
        verify: Whether to compute checksums.
        number: Numbers a queue by topic and queue id; called for each queue when the walk is over, in the
            order in which they appeared.

    Returns:
        The rows packed as ``ROW``, where the records lie whose properties say more about queues, and where
        the walk stopped.
    """

def find_record(buffer: memoryview, phy_offset: int, start: int, /) -> int:
    """Returns the first place at or behind ``start`` where a whole record proves itself, -1 without one."""
