"""The conclusion of a walk: what a walked log, its queues and the files beside it amount to, as findings.

Holds the one place that puts findings together, for a survey (one split, rows in memory) and for an audit
(many splits, bounded memory); what a store lists; and the losses that are known already.

Called by surveys and audits; neither adds findings of its own about log and queues.
Truth: the walk over the log.
"""

from seglog.storage.scan.holes_file import HOLES_FILE as HOLES_FILE
from seglog.storage.scan.holes_file import forget_lost as forget_lost
from seglog.storage.scan.holes_file import parse_holes as parse_holes
from seglog.storage.scan.listed import ListedStore as ListedStore
from seglog.storage.scan.message_counts import MessageCounts as MessageCounts
