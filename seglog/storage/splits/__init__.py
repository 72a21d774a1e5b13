"""The walk over a log in splits, in any order and in any process, and what they amount to together.

Holds the cut of a log into splits, the scan of one of them, what it reports (``stretches``, plain values of
bounded size: runs and intervals, no object per record), and how stretches are stitched into a log.

Called by audits, the doctor's check and the Spark jobs.
Truth: the records of the log; a split says what it saw, the stitching decides what is the log.
"""

from seglog.storage.splits.known_records import KNOWN_KEYS as KNOWN_KEYS
from seglog.storage.splits.known_records import KnownRecords as KnownRecords
from seglog.storage.splits.known_records import RecordNotes as RecordNotes
from seglog.storage.splits.known_records import known_within as known_within
from seglog.storage.splits.split_scan import SplitScan as SplitScan
from seglog.storage.splits.splits import DEFAULT_SPLIT_BYTES as DEFAULT_SPLIT_BYTES
from seglog.storage.splits.splits import MIN_SPLIT_BYTES as MIN_SPLIT_BYTES
from seglog.storage.splits.stitch import LogOutcome as LogOutcome
from seglog.storage.splits.stretches import BatchRun as BatchRun
from seglog.storage.splits.stretches import Interval as Interval
from seglog.storage.splits.stretches import QueueEnd as QueueEnd
from seglog.storage.splits.stretches import Stretch as Stretch
from seglog.storage.splits.stretches import UnitState as UnitState
from seglog.storage.splits.unit_files import UnitFiles as UnitFiles
