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

    Raises:
        TruncatedError: The buffer is the map of a file, and a byte of it cannot be read any more.
    """

def walk_stretch(
    buffer: memoryview,
    phy_offset: int,
    start: int,
    until: int,
    verify: bool,
    resync: bool,
    rows: memoryview,
    /,
) -> tuple[int, list[int], int, int, list[tuple[bytes, int]]]:
    """Walks records from ``start`` up to the first one at or behind ``until``, as far as they are right.

    Args:
        buffer: A stretch of one segment.
        phy_offset: Physical offset of its first byte.
        start: Where in it to begin.
        until: Where in it to end; the last record may go on behind it.
        verify: Whether to compute checksums.
        resync: Whether to begin at the first record at or behind ``start`` that proves itself.
        rows: Takes the rows, packed as ``ROW``, with queues numbered from 0 as they appeared; the walk ends
            where there is no more room for them.

    Returns:
        How many rows; where the records lie whose properties say more about queues; where the walk began, the
        length of the buffer if nowhere; where it stopped; and the queues' topics and ids.

    Raises:
        TruncatedError: The buffer is the map of a file, and a byte of it cannot be read any more.
    """

def find_record(buffer: memoryview, phy_offset: int, start: int, /) -> int:
    """Returns the first place at or behind ``start`` where a whole record proves itself, -1 without one.

    Raises:
        TruncatedError: As of :func:`walk_stretch`.
    """

def key_rows(
    window: memoryview, phy_offset: int, start: int, tags: bool, rows: memoryview, /
) -> tuple[int, int]:
    """Writes the keys of the records of a window from ``start`` on as ``KEY_ROW`` into ``rows``.

    Returns:
        How many, and where that ends: at something else than a whole record, or one whose keys have no room.

    Raises:
        TruncatedError: As of :func:`walk_stretch`.
    """

def put_keys(buffer: memoryview, slot_count: int, entry_count: int, rows: memoryview, /) -> int:
    """Does what :func:`seglog.storage.format.index_build.put_keys` does.

    Raises:
        TruncatedError: As of :func:`walk_stretch`.
    """

def rows_stand_in(rows: memoryview, units: memoryview, /) -> bool:
    """Returns what :func:`seglog.storage.kernels.units.stand_in` does, of the bytes of both."""

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
