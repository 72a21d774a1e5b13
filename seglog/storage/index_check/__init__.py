"""The key index held against the log: entries, chains, times and headers of its files.

Holds the facts of an index that decide which keys records must have, the comparison, window by window, and
the findings that follow; one comparison for ``info``, checks, repairs and audits.

Called by audits, the doctor and openings.
Truth: the keys of the records.
"""

from seglog.storage.index_check.index_chains import chain_finding as chain_finding
from seglog.storage.index_check.index_chains import is_whole as is_whole
from seglog.storage.index_check.index_check import check_index as check_index
from seglog.storage.index_check.index_check import compare_log as compare_log
from seglog.storage.index_check.index_coverage import IndexFacts as IndexFacts
from seglog.storage.index_check.index_coverage import index_facts as index_facts
from seglog.storage.index_check.index_coverage import load_index as load_index
from seglog.storage.index_check.index_coverage import outlined_or_damaged as outlined_or_damaged
from seglog.storage.index_check.index_entries import HeldEntries as HeldEntries
from seglog.storage.index_check.index_entries import IndexEntries as IndexEntries
from seglog.storage.index_check.index_outline import FileOutline as FileOutline
from seglog.storage.index_check.key_check import NO_DIFF as NO_DIFF
from seglog.storage.index_check.key_check import KeyCheck as KeyCheck
from seglog.storage.index_check.key_check import KeyDiff as KeyDiff
from seglog.storage.index_check.key_check import Places as Places
from seglog.storage.index_check.key_check import late as late
from seglog.storage.index_check.walk_findings import index_findings as index_findings
