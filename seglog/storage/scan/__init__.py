"""The conclusion of a walk: the findings about a walked log, its queues and the files beside it.

Holds the only module that creates these findings, for a survey (one split, rows in memory) and for an audit
(many splits, bounded memory); the listing of a store; and the file of known holes, with losses that were
written down before.

Called by surveys and audits; neither adds findings of its own about log and queues. The doctor reads the file
of known holes, and uses the findings about the lengths of log files.
Truth: the walk over the log.
"""

from seglog.storage.scan.doubt import Doubt as Doubt
from seglog.storage.scan.doubt import doubt_of as doubt_of
from seglog.storage.scan.doubt import has_uncounted as has_uncounted
from seglog.storage.scan.doubt import lost_end as lost_end
from seglog.storage.scan.file_findings import log_findings as log_findings
from seglog.storage.scan.holes_file import HOLES_FILE as HOLES_FILE
from seglog.storage.scan.holes_file import TOMBSTONES as TOMBSTONES
from seglog.storage.scan.holes_file import KnownHole as KnownHole
from seglog.storage.scan.holes_file import forget_lost as forget_lost
from seglog.storage.scan.holes_file import load_holes as load_holes
from seglog.storage.scan.holes_file import lost_of_tail as lost_of_tail
from seglog.storage.scan.holes_file import note_hole as note_hole
from seglog.storage.scan.holes_file import parse_holes as parse_holes
from seglog.storage.scan.holes_file import save_holes as save_holes
from seglog.storage.scan.listed import ListedStore as ListedStore
from seglog.storage.scan.message_counts import MessageCounts as MessageCounts
from seglog.storage.scan.message_counts import QueueEnds as QueueEnds
from seglog.storage.scan.message_counts import Queues as Queues
from seglog.storage.scan.rocksdb_findings import refusals as refusals
