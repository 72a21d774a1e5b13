"""The walk over the commit log: records, holes, and where the log ends.

Holds the one loop over records (``segment_walk``), the one rule of where a log continues behind damage
(``behind_damage``), and the walk over a whole log that uses both, as the splits of an audit and of Spark do;
the rows that they yield (numpy, no object per record), and the queues of a row.

Called by surveys, audits, recovery, seals and the key index.
Truth: bytes that prove themselves: length, place, magic and checksums of a record.
"""

from seglog.storage.walk.behind_damage import Head as Head
from seglog.storage.walk.behind_damage import Hole as Hole
from seglog.storage.walk.growable_rows import place_of as place_of
from seglog.storage.walk.log_records import LogWindows as LogWindows
from seglog.storage.walk.log_records import RecordsBehind as RecordsBehind
from seglog.storage.walk.log_records import iter_key_rows as iter_key_rows
from seglog.storage.walk.log_records import record_at as record_at
from seglog.storage.walk.log_scan import LogScan as LogScan
from seglog.storage.walk.log_scan import Progress as Progress
from seglog.storage.walk.segment_walk import MISSING as MISSING
from seglog.storage.walk.segment_walk import SegmentWalk as SegmentWalk
from seglog.storage.walk.segment_walk import Split as Split
from seglog.storage.walk.segment_walk import Stopped as Stopped
