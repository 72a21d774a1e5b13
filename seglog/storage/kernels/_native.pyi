"""The kernels in C, made of ``native/``. All let go of the GIL while they run for long."""

from collections.abc import Callable

from seglog.storage.format.host import Host

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

def populate(pages: memoryview, /) -> bool:
    """Makes the whole pages of a stretch of a file's map ready to be written to; their content stays.

    Returns:
        Whether it did; it does not on Linux before 5.14 and elsewhere, or without space behind a page.
    """

class Draft:
    """What ``PythonDraft`` is, for usual values: of all others ``Draft(...)`` makes a ``PythonDraft``.

    Usual are topics of one length byte but the delay topic, and properties that are stored as they are given.
    """

    properties: bytes
    size_bytes: int
    takes_queue_offset: bool

    def __init__(
        self,
        topic: bytes,
        queue_id: int,
        body: bytes | memoryview,
        properties: bytes,
        tags_code: int,
        sys_flag: int,
        flag: int,
        born_timestamp_ms: int,
        born_host: Host,
        store_host: Host,
        reconsume_times: int,
        prepared_transaction_offset: int,
        record_crc: bool,
        /,
    ) -> None: ...
    def unit_tags_code(self, store_timestamp_ms: int, /) -> int: ...
    def write(
        self, buffer: memoryview, at: int, queue_offset: int, phy_offset: int, store_timestamp_ms: int, /
    ) -> None: ...
