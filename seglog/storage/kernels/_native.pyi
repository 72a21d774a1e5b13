"""The kernels in C, made of ``native/``. All release the GIL while they run for long.

A function that reads a buffer raises TruncatedError if that is the map of a file that another process cut.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Self, TypeVar, overload

from seglog.storage.format.get_status import GetStatus
from seglog.storage.format.record.host import Host
from seglog.storage.format.record.message import Message
from seglog.storage.kernels.calls.fast_path import FastPathOwner, Gathered, Made
from seglog.storage.kernels.calls.read_result import PythonReadResult
from seglog.storage.kernels.sends import SendRules

_R = TypeVar("_R", bound=tuple[Any, ...])
_B = TypeVar("_B")
_D = TypeVar("_D")
_C = TypeVar("_C")
_H = TypeVar("_H")
_Q = TypeVar("_Q")
_P = TypeVar("_P")
_A = TypeVar("_A")
_F = TypeVar("_F", bound=ReadResult | PythonReadResult)

INTERFACE: str
"""What it was compiled for: ``seglog.storage.kernels.INTERFACE`` of its sources."""

CRC32_WAY: str
"""How checksums of messages of some length are computed: ``multiply`` (carry-less) or ``table``."""

def crc32(data: bytes | bytearray | memoryview, before: int = 0, /) -> int:
    """Returns what ``zlib.crc32`` does."""

def crc32_by_table(data: bytes | bytearray | memoryview, before: int = 0, /) -> int:
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
        The rows packed as ``ROW``, where the records are whose properties say more about queues, and where
        the walk stopped.
    """

def record_facts(
    buffer: memoryview,
    phy_offset: int,
    rows: memoryview,
    asks: bytes,
    salt: int,
    flag: int,
    properties: bytes,
    facts: memoryview,
    /,
) -> int:
    """Writes the facts of records, ``FACT``, as far as they are there; returns how many.

    Args:
        buffer: A stretch of one segment.
        phy_offset: Physical offset of its first byte.
        rows: The records, ``ROW``.
        asks: What is asked of each queue.
        salt: Of the hashes of keys.
        flag: That of placeholders.
        properties: Those of placeholders.
        facts: Room for as many.
    """

def last_of_keys(rows: memoryview, are_last: memoryview, /) -> None:
    """Says of each row, ``KEYED``, in a byte whether it is the last of its key."""

def spilled_units(
    rows: memoryview,
    records: memoryview,
    phy_offset: int,
    are_plain: bytes,
    placeholder_flag: int,
    units: memoryview,
    /,
) -> int:
    """Writes the units, ``SPILLED``, of records with a place in a plain queue; returns how many.

    Args:
        rows: The records, ``ROW``.
        records: Their bytes.
        phy_offset: Physical offset of the first of these.
        are_plain: A byte for each queue.
        placeholder_flag: The field ``flag`` of placeholders.
        units: Room for as many as there are rows.
    """

def units_by_queue(units: memoryview, queue_count: int, ordered: memoryview, /) -> list[int]:
    """Puts units, ``SPILLED``, in the order of their queues; returns where each queue begins, and the end."""

def move_records(
    source: memoryview,
    source_phy_offset: int,
    starts: memoryview,
    sizes: memoryview,
    are_replaced: memoryview,
    flag: int,
    properties: bytes,
    target: memoryview,
    phy_offset: int,
    /,
) -> int:
    """Copies records one behind the other to where they go in the log; returns how many it could.

    Args:
        source: A stretch of one segment.
        source_phy_offset: Physical offset of its first byte.
        starts: Where in it each record starts, int64.
        sizes: How long each is, or its placeholder, int64.
        are_replaced: Whether a placeholder goes in its place, a byte each.
        flag: That of placeholders.
        properties: Those of placeholders.
        target: Room for all of them.
        phy_offset: Where in the log it is.
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
    """Walks records from ``start`` up to the first one at or after ``until``, as far as they are right.

    Args:
        buffer: A stretch of one segment.
        phy_offset: Physical offset of its first byte.
        start: Where in it to begin.
        until: Where in it to end; the last record may end after it.
        verify: Whether to compute checksums.
        resync: Whether to begin at the first record at or after ``start`` that proves itself.
        rows: Takes the rows, packed as ``ROW``, with queues numbered from 0 as they appeared; the walk ends
            where there is no more room for them.

    Returns:
        How many rows; where the records are whose properties say more about queues; where the walk began, the
        length of the buffer if nowhere; where it stopped; and the queues' topics and ids.
    """

def walk_into(
    buffer: memoryview,
    phy_offset: int,
    start: int,
    until: int,
    verify: bool,
    number: Callable[[bytes, int], int],
    rows: memoryview,
    keys: memoryview | None,
    tags: bool,
    /,
) -> tuple[int, list[int], int, bool, int, list[int], int, int]:
    """Walks records as :func:`walk_stretch` does, numbers queues as :func:`walk` does, and finds keys.

    ``rows`` takes the rows, packed as ``ROW``; ``keys``, unless it is None, the keys, packed as ``KEY_ROW``,
    those of tags too if ``tags``. The walk ends before a record for which either has no room.

    Returns:
        How many rows; where the records are whose properties say more about queues; where the walk stopped;
        whether for lack of room; how many keys; where the tombstones are, which have none; how many records
        have a record CRC; and how many are placeholders of a compaction.
    """

def find_record(buffer: memoryview, phy_offset: int, start: int, until: int, /) -> int:
    """Returns the first place in ``[start, until)`` where a whole record proves itself, -1 without one."""

def key_rows(
    window: memoryview, phy_offset: int, start: int, tags: bool, rows: memoryview, /
) -> tuple[int, int]:
    """Writes the keys of the records of a window from ``start`` on as ``KEY_ROW`` into ``rows``.

    Returns:
        How many, and where that ends: at something else than a whole record, or one whose keys have no room.
    """

def put_keys(buffer: memoryview, slot_count: int, entry_count: int, rows: memoryview, /) -> int:
    """Does what :func:`seglog.storage.format.index.index_build.put_keys` does."""

def block_sums(buffer: memoryview, block_bytes: int, /) -> list[int] | None:
    """Returns the CRC-32C of each block of a buffer; None if the CPU has no instruction for it."""

def group_rows(
    rows: memoryview, queue_count: int, grouped: memoryview, /
) -> list[tuple[int, int, int, int, int]] | None:
    """Does what :func:`seglog.storage.kernels.queue_rows.group` does; None where it does nothing.

    Returns:
        Number, records, bytes, least and greatest store time of each queue, by the numbers.
    """

def rows_stand_in(rows: memoryview, units: memoryview, /) -> bool:
    """Returns what :func:`seglog.storage.kernels.queue_rows.stand_in` does, of the bytes of both."""

def entries_extent(entries: memoryview, /) -> tuple[int, int, bool]:
    """Returns what :func:`seglog.storage.kernels.index_entries.extent_of` does, of the bytes of entries."""

def follow_entries(
    entries: memoryview, first: int, newest: memoryview, most: int, /
) -> list[tuple[int, int]]:
    """As :func:`seglog.storage.kernels.index_entries.follow`, naming the first ``most`` wrong ones."""

def entries_stand_for(rows: memoryview, entries: memoryview, begin_ms: int, starts_file: bool, /) -> bool:
    """Returns what :func:`seglog.storage.kernels.index_entries.stand_for` does, of the bytes of both."""

def have_key(buffer: memoryview, first: int, places: memoryview, key: bytes, /) -> bytes:
    """Returns 0 or 1 for each place: whether its record may have a key, as one that cannot be read may.

    Args:
        buffer: A segment.
        first: Where it begins.
        places: ``(n,) int64``, of records in it.
        key: The key.
    """

def key_digest(topic: bytes, key: bytes, seed: bytes, /) -> int:
    """Returns 64 bits that tell a key from others, never 0: SipHash-1-3, with a seed of 16 bytes."""

def key_digests(buffer: memoryview, first: int, places: memoryview, key_hash: int, seed: bytes, /) -> bytes:
    """Returns :func:`key_digest` of the keys that entries of the index stand for; 0 where it may be any.

    Args:
        buffer: A segment.
        first: Where it begins.
        places: ``(n,) int64``, of records in it; as many of one record in a row as it has keys of the hash.
        key_hash: The hash that the entries have.
        seed: Of the digests.

    Returns:
        ``(n,) uint64``.
    """

def index_keys(buffer: memoryview, phy_offset: int, with_tags: bool, /) -> tuple[bytes, list[int], int, int]:
    """Returns the keys of the records from the start of the buffer on.

    Args:
        buffer: A stretch of one segment that starts with a record; the first that is none ends it.
        phy_offset: Physical offset of its first byte.
        with_tags: Whether tags are keys.

    Returns:
        The keys packed as ``KEY_ROW``, where in the buffer the tombstones are, which have none, how
        many records have a record CRC, and how many are placeholders of a compaction.
    """

def copy_strings(buffer: memoryview, starts: memoryview, sizes: memoryview, target: memoryview, /) -> None:
    """Copies strings of a buffer one after the other.

    Args:
        buffer: The memory of all strings.
        starts: Where each starts, 64-bit numbers.
        sizes: How long each is, 64-bit numbers.
        target: Takes them.

    Raises:
        ValueError: A string does not lie within the buffer, or all together not within the target.
    """

def message_columns(
    buffer: memoryview, rows: memoryview, phy_offset: int, columns: tuple[memoryview | None, ...], /
) -> tuple[int, int]:
    """Fills columns of messages in one pass over their records.

    Args:
        buffer: A stretch of the log.
        rows: The records, as ``ROW``.
        phy_offset: Physical offset of the first byte.
        columns: Memory for each, None where it is not asked for. Five 64-bit numbers for each record (flag,
            deliveries that failed, CRC of the body, place of the half message, time of birth). Then for each
            of body, KEYS, TAGS, message id, offsetMsgId, host of birth and store host: where the string of
            each record ends (32-bit numbers), the strings, and whether there is one (bytes). Then for the
            properties as a map: the entries up to the end of each record, where names end, names, where
            values end, values.

    Returns:
        What was not filled (1: a row is no record, or there is no room: nothing; 2: a record has more than 64
        properties: the map; 4 and 8: IPv6: host of birth and store host), and how many entries the map has.

    Raises:
        ValueError: A column has less memory than one item for each record.
    """

def open_beneath(folder: int, path: bytes, flags: int, /) -> int:
    """Opens what a path below an open folder leads to, through no link and not out of the folder.

    Args:
        folder: Descriptor of the folder.
        path: Relative to it.
        flags: Of ``open``; none that make a file.

    Returns:
        A descriptor.

    Raises:
        OSError: ``ELOOP`` for a link on the way, ``EXDEV`` for a way out, ``ENOSYS`` without ``openat2``.
    """

def open_plain(folder: int, path: bytes, flags: int, /) -> int:
    """Opens a regular file as :func:`open_beneath` does, with flags that keep it safe.

    Returns:
        A descriptor; -1 for anything else, such as a file with several names to write to.
    """

def mode_beneath(folder: int, path: bytes, /) -> int:
    """Returns the mode of what a path below an open folder leads to, through no link.

    Returns:
        The mode, of a link its own; 0 where there is nothing, 1 where the way leads elsewhere.
    """

def parts_of(
    views: list[memoryview], numbers: memoryview, starts: memoryview, sizes: memoryview, /
) -> list[memoryview]:
    """Returns parts of several memories, without copying, as ``LogBytes``.

    Args:
        views: The memories.
        numbers: Of each part the number of its memory, 32 bits.
        starts: Where in it each starts, 64-bit numbers.
        sizes: How long each is, 64-bit numbers.

    Raises:
        ValueError: A part does not lie within its memory, or lacks a number, a start or a size.
        IndexError: There is no memory of that number.
    """

def populate(pages: memoryview, /) -> bool:
    """Makes the whole pages of a stretch of a file's map ready to be written to; their content stays.

    Returns:
        Whether it did; it does not on Linux before 5.14 and elsewhere, or without space behind a page.
    """

class PendingRecord:
    """A ``PythonPendingRecord`` in C, for usual values; of any others the Python one is made.

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

class _Tail:
    def grant(
        self,
        memory: memoryview,
        first: int,
        end: int,
        length: Callable[[], int] | None,
        descriptor: int,
        /,
    ) -> None: ...
    def revoke(self) -> None: ...

class LogTail(_Tail):
    """What ``PythonLogTail`` is; its numbers have 64 bits."""

    end_phy_offset: int
    last_phy_offset: int
    last_store_ms: int
    newest_store_ms: int
    keyed_end: int
    wake_allocator_at: int
    @property
    def past_map_bytes(self) -> int: ...
    @property
    def is_shut(self) -> bool: ...
    def __init__(
        self, end_phy_offset: int, last_phy_offset: int, last_store_ms: int, newest_store_ms: int
    ) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...

class QueueTail(_Tail):
    """What ``PythonQueueTail`` is; its numbers have 64 bits."""

    min_offset: int
    max_offset: int
    max_phy_offset: int

    def __init__(self, min_offset: int, max_offset: int, max_phy_offset: int) -> None: ...

def read_header(
    header: bytes, most_fields: int, /
) -> tuple[int, str | None, int, int, int, str | None, dict[str, str] | None] | None:
    """Reads the header of a frame in form JSON, if it is as clients write them.

    Returns:
        Code, language, version, opaque, flag, remark and fields, as they stand there: numbers that are
        missing are 0, all others None. None for any other header, and for what is none.
    """

def write_header(
    code: int,
    fields: Mapping[str, str] | None,
    flag: int,
    language: str,
    opaque: int,
    remark: str | None,
    form: str,
    version: int,
    /,
) -> bytes | None:
    """Writes the header of a frame in form JSON; None for values that Python must look at."""

def read_fields(
    kind: type[_H], fields: Mapping[str, str], plan: tuple[tuple[str, str, int, object], ...], /
) -> _H | None:
    """Makes a header of the fields that came, without its constructor.

    Args:
        kind: Its class, whose attributes are slots.
        fields: Text by name.
        plan: Of each field its attribute, its name, its kind (0 text, 1 and 2 numbers of 32 and 64 bits, 3
            bool, 4 bytes; with 8 where it is required) and the value where it is missing.

    Returns:
        The header; None where a field is missing, wrong or unusual.
    """

def write_fields(header: object, plan: tuple[tuple[str, str, int, object], ...], /) -> dict[str, str] | None:
    """Returns the fields of a header, but for what is None; None where one is unusual."""

def quick_init(
    kind: type, fields: tuple[tuple[str] | tuple[str, object], ...], stated: Callable[..., None], /
) -> Callable[..., None]:
    """Returns an ``__init__`` that fills the slots of a class; what is not usual is left to ``stated``.

    Args:
        kind: The class.
        fields: The name of each field, in the order of the arguments, and its value where none is given.
        stated: Takes the same arguments.
    """

class FastPath(Generic[_R, _B, _D]):
    """What ``PythonFastPath`` is; it takes batches of any messages.

    It never lets go of the GIL between looking at the tails and changing them, so puts need no lock. While
    ``is_shut`` of the log's tail says that the append lock is held, it leaves them to the ordinary way.
    """

    lacks_window: bool
    @property
    def gathered(self) -> list[Gathered[_R]]: ...
    def __init__(self, tail: LogTail, owner: FastPathOwner[_R, _B, _D], /) -> None: ...
    def try_puts(self, made: list[Made[_R]], /) -> bool: ...
    def add(self, topic: str, queue_id: int, tail: QueueTail, /) -> None: ...
    def forget(self) -> None: ...
    def close(self) -> None: ...
    def try_put(
        self,
        topic: str,
        body: bytes | memoryview,
        queue_id: int,
        tags: str | None,
        keys: str | Iterable[str] | None,
        properties: Mapping[str, str] | None,
        flag: int,
        durability: _D | None,
        /,
    ) -> _R | None: ...
    def try_put_batch(
        self, topic: str, messages: Sequence[Any], queue_id: int, durability: _D | None, /
    ) -> _B | None: ...
    def try_append(
        self,
        topic: str,
        queue_id: int,
        body: bytes | memoryview,
        properties: bytes,
        tags_code: int,
        sys_flag: int,
        flag: int,
        born_timestamp_ms: int | None,
        born_host: Host | None,
        store_host: Host | None,
        reconsume_times: int,
        prepared_transaction_offset: int,
        durability: _D | None,
        /,
    ) -> _R | None: ...
    def try_append_batch(
        self,
        topic: str,
        queue_id: int,
        messages: Sequence[Any],
        sys_flag: int,
        born_timestamp_ms: int | None,
        born_host: Host | None,
        reconsume_times: int,
        durability: _D | None,
        /,
    ) -> _B | None: ...

class UsualSends(Generic[_Q, _P, _A]):
    """What :func:`seglog.storage.kernels.sends.new_sends` makes."""

    def __init__(self, path: FastPath[Any, Any, Any], rules: SendRules[_Q, _P, _A, Any], /) -> None: ...
    def try_send(self, request: _Q, peer: _P, /) -> _A | None:
        """Answers a send that is usual; None for any other request, of which nothing was done."""

def store_calls(python: type[_C], documents: dict[str, str], /) -> type[_C]:
    """Returns a subclass whose put, append, put_batch, append_batch and get are tried natively first.

    Where that is not possible the methods of ``python`` make them. A method ``_serve_natively`` takes the
    store's fast path and reads, as far as they are native, and returns whether the fast path is.

    Args:
        python: States the calls; its instances have no fields of their own.
        documents: By name what the calls are documented by: signature, ``--`` and text.
    """

class LogBytes:
    """Bytes of the log, where they are: used as a read-only memoryview, whose class it gives as its own.

    ``memoryview(it)`` makes one; what it has no quick way for, slices among them, is answered by one. It
    keeps the map that it is part of, as memoryviews do. Only reads make them.
    """

    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int, /) -> int: ...
    @overload
    def __getitem__(self, index: slice, /) -> memoryview: ...

class ReadResult:
    """``PythonReadResult`` whose runs and records are made when they are first asked for."""

    decoded: list[Message] | None

    def __init__(
        self,
        status: GetStatus,
        next_offset: int,
        min_offset: int,
        max_offset: int,
        runs: Sequence[memoryview] = ...,
        lost: tuple[range, ...] = ...,
        sizes: Sequence[int] | None = None,
    ) -> None:
        """As ``PythonReadResult``; ValueError where the records do not fill the runs."""
    status: GetStatus
    next_offset: int
    min_offset: int
    max_offset: int
    lost: tuple[range, ...]
    @property
    def runs(self) -> list[memoryview]: ...
    @property
    def records(self) -> list[memoryview]: ...
    def __len__(self) -> int: ...

class Decoder:
    """Decodes records that are right, and asks ``slow_decode`` to say what is wrong with others."""

    def __init__(
        self,
        message_type: type[Message],
        new_host: Callable[[bytes, int], Host],
        slow_decode: Callable[..., Message],
        /,
    ) -> None:
        """Takes what messages are made of.

        Messages pass for objects of ``message_type``, which is always the same; ``new_host`` makes a host of
        address and port, for several messages; ``slow_decode`` is the Python function.
        """

    def decode(self, record: bytes | bytearray | memoryview, /, *, verify: bool = False) -> Message:
        """Takes the arguments of ``decode_message``."""

    def decode_runs(self, runs: list[memoryview], added: bytes, /) -> list[Message] | None:
        """As ``decode_runs`` of the module ``decode``."""

    def iterate(self, result: ReadResult | PythonReadResult, /) -> Iterator[Message]:
        """Yields the messages of a native ``ReadResult``, each decoded when its turn comes."""

    def set_properties(self, message: Message, properties_raw: bytes, /) -> bool:
        """Gives a message without other references other properties; False for one that Python made."""

class Maps:
    """The maps of a rolling sequence of files, by the offset of their first byte.

    Attributes:
        guarded_end: Records that begin below this offset are served only where :meth:`know` said of their
            blocks that they are as they were written.
    """

    guarded_end: int

    def __init__(self, file_size_bytes: int, /) -> None: ...
    def set(self, first_offset: int, view: memoryview, length_now: Callable[[], int] | None, /) -> None:
        """Takes a file's map.

        Args:
            first_offset: Of the file.
            view: The whole file, read-only; results of reads hold it.
            length_now: Asks the system how long the file is; called at most once a millisecond, and before
                the map is first read.
        """

    def drop(self, first_offset: int, /) -> None:
        """Gives a file's map up."""

    def refuse(self, first_offset: int, /) -> None:
        """Leaves a file to Python, even if it is mapped."""

    def know(self, first_offset: int, states: bytearray, /) -> None:
        """Takes what is known of each block of a file, as BlockGuard keeps it up."""

class TagSet:
    """The tags codes that a filter lets pass, and the tags that it compares then, unless codes are enough."""

    def __init__(self, codes: tuple[int, ...], tags: tuple[bytes, ...] | None, /) -> None: ...

class Reads(Generic[_F]):
    """Serves plain reads of one store; all others are Python's.

    Plain is what is in maps that are known, is wanted by tags or not filtered at all, and holds
    nothing that may have been lost.
    """

    def __init__(
        self,
        result_type: type[_F],
        filter_type: type,
        found: GetStatus,
        no_match: GetStatus,
        log_tip: object,
        log_maps: Maps,
        limits: tuple[int, int, int],
        /,
    ) -> None:
        """As :func:`seglog.storage.kernels.calls.native_reads.new_reads` says."""
    def try_get(self, *arguments: object, **named: object) -> _F | None:
        """Takes the arguments of ``MessageStore.get``; None for a read that is Python's."""

    def record_at(self, phy_offset: int, /) -> memoryview | None:
        """Returns what looks like a record there that stands for no loss; None if Python must look.

        Its checksums and its own offset are not looked at.
        """

    def add(self, topic: str, queue_id: int, tail: object, maps: Maps, /) -> None:
        """Registers a queue of 20-byte units."""

    def know(self, expression: str, tags: TagSet | None, /) -> None:
        """Registers what a filter that is text stands for; None for all messages."""

    def forget(self) -> None:
        """Forgets all queues: some may have become others."""

    def close(self) -> None:
        """Leaves everything to Python from now on."""
