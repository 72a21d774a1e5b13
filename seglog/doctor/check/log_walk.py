"""Walks all splits of a log in threads, compares sealed segments with their seals, and can be stopped.

In a segment with a seal each split is summed first: if every block has the checksum of the seal, the walk
skips the checksums of the records. The outcome of each split is yielded at once, so a stopped walk can be
resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from seglog.doctor.check.record_observer import RecordWatch, Seen
from seglog.errors import TruncatedError
from seglog.storage.audit import AuditPlan
from seglog.storage.directory import LogReader
from seglog.storage.files import Files
from seglog.storage.format.ours import SEAL_BLOCK_BYTES, Seal
from seglog.storage.index_check import IndexFacts
from seglog.storage.kernels import block_sums as sums
from seglog.storage.splits import KnownRecords, SplitScan, Stretch, UnitFiles, known_within
from seglog.storage.walk import Split

THREADS: Final = 2
"""Two cores read and sum faster than most disks deliver; the walk releases the GIL."""

_SUMMED_BYTES: Final = 16 << 20
"""Bytes of a map that are summed at a time, a multiple of the block size of seals."""

ShouldStop = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class SplitOutcome:
    """The outcome of one split.

    Attributes:
        split: Number of the split.
        sums: CRC-32C of each of its 64 KiB blocks, for a sealed segment.
        stretches: Its stretches in order.
        seen: Further facts about each stretch.
    """

    split: int
    sums: tuple[int, ...]
    stretches: tuple[Stretch, ...]
    seen: tuple[Seen, ...]


class LogWalk:
    """The walk over the log of one store.

    Args:
        plan: The store; splits begin and end where blocks of seals do.
        files: Access to the files.
        seals: The seals, by the first offset of their segment.
        index: The entries that the index must hold.
        known: Records that were checked when they were written.
    """

    def __init__(
        self,
        plan: AuditPlan,
        files: Files,
        seals: dict[int, Seal],
        index: IndexFacts,
        known: KnownRecords | None = None,
    ) -> None:
        self._plan = plan
        self._files = files
        self._seals = seals
        self._index = index
        self._known = known
        # Listed once: listing each queue for each split costs more than reading the units.
        self._units = UnitFiles(files, plan.root, plan.geometry.queue_file_size_bytes)

    def run(self, splits: Sequence[Split], should_stop: ShouldStop) -> Iterator[SplitOutcome]:
        """Yields the outcomes of splits as they are done; after a stop request running splits are finished.

        Args:
            splits: The splits to walk.
            should_stop: Called before another split is begun; True stops the walk.
        """
        waiting = list(reversed(splits))
        running: set[Future[SplitOutcome]] = set()
        with ThreadPoolExecutor(THREADS, "seglog-check") as pool:
            try:
                while waiting or running:
                    # One more than there are threads: no thread idles, and a stop request leaves few splits
                    # to finish.
                    while waiting and len(running) <= THREADS and not should_stop():
                        running.add(pool.submit(self._walk, waiting.pop()))
                    if not running:
                        return
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for outcome in done:
                        yield outcome.result()
            finally:
                for future in running:
                    future.cancel()

    def watch(self) -> RecordWatch:
        """Returns a new observer of records, as this walk uses them."""
        return RecordWatch(self._index, self._files)

    def _walk(self, split: Split) -> SplitOutcome:
        seal = self._seals.get(split.segment_end - self._plan.geometry.segment_size_bytes)
        return walk_split(self._plan, self._files, split, seal, self._index, self._units, self._known)


def walk_split(
    plan: AuditPlan,
    files: Files,
    split: Split,
    seal: Seal | None,
    index: IndexFacts,
    units: UnitFiles | None = None,
    known: KnownRecords | None = None,
) -> SplitOutcome:
    """Walks one split, in any process.

    Args:
        plan: The store; its lists of files and splits are not used here.
        files: Access to the files.
        split: The split; it begins and ends at block boundaries of seals.
        seal: The seal of its segment, None if there is none.
        index: The entries that the index must hold: all, or ``facts.within(split.start, split.segment_end)``.
        units: The store's queue files, if they are shared with other splits.
        known: Records that were checked when they were written; not used in a sealed segment.
    """
    found: tuple[int, ...] = ()
    is_whole = False
    if seal is not None:
        first = (split.start - seal.first_phy_offset) // SEAL_BLOCK_BYTES
        found = _sum(plan, files, split, seal)
        sealed = seal.blocks["crc32c"][first : first + len(found)].tolist()
        is_whole = found == tuple(sealed)
    # The filler at the end of a segment may extend over later splits.
    watch = RecordWatch(index.within(split.start, split.segment_end), files)
    with closing(
        SplitScan(
            files,
            plan.root,
            plan.geometry,
            plan.batch_topics,
            verify=plan.verify and not is_whole,
            watch=watch,
            units=units,
        )
    ) as scan:
        segment_bytes = plan.geometry.segment_size_bytes
        found_before = known_within(None if seal else known, split, segment_bytes, tags=watch.tags)
        stretches = tuple(scan.run(split, known=found_before))
    return SplitOutcome(
        split.number, found, stretches, tuple(watch.seen[stretch.start] for stretch in stretches)
    )


def _sum(plan: AuditPlan, files: Files, split: Split, seal: Seal) -> tuple[int, ...]:
    """Returns the CRC-32C of the split's blocks, -1 for blocks that the file does not have."""
    end = min(split.end, seal.first_phy_offset + seal.segment_bytes)
    wanted = -(-(end - split.start) // SEAL_BLOCK_BYTES)
    segment_bytes = plan.geometry.segment_size_bytes
    found: list[int] = []
    with closing(LogReader(files, plan.root, segment_bytes)) as reader:
        for start in range(split.start, end, _SUMMED_BYTES):
            size = min(_SUMMED_BYTES, end - start)
            of_map = _sums_of_map(reader, segment_bytes, start, size)
            found += sums.block_checksums(reader.read(start, size)) if of_map is None else of_map
    return tuple(found) + (-1,) * (wanted - len(found))


def _sums_of_map(reader: LogReader, segment_bytes: int, start: int, size_bytes: int) -> list[int] | None:
    """Returns the sums of a whole stretch of a segment, if native kernels can read it."""
    block_sums = sums.native_block_sums
    memory = None if block_sums is None else reader.map(start)
    first = start % segment_bytes
    if block_sums is None or memory is None or first + size_bytes > len(memory):
        return None
    try:
        return block_sums(memory[first : first + size_bytes], SEAL_BLOCK_BYTES)
    except TruncatedError:
        return None  # the caller reads the file block by block
    finally:
        reader.let_go(start, start + size_bytes)
