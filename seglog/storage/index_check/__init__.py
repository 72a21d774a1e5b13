"""The key index held against the log: entries, chains, times and headers of its files.

Holds the facts of an index that decide which keys records must have, the comparison, window by window, and
the findings that follow; one comparison for ``info``, checks, repairs and audits.

Called by audits, the doctor and openings.
Truth: the keys of the records.
"""

from __future__ import annotations

from seglog.storage.index_check.index_chains import chain_finding
from seglog.storage.index_check.index_check import check_index, compare_log
from seglog.storage.index_check.index_entries import HeldEntries, IndexEntries
from seglog.storage.index_check.index_facts import IndexFacts, index_facts, load_index, outlined_or_damaged
from seglog.storage.index_check.index_findings import index_findings
from seglog.storage.index_check.index_outline import FileOutline
from seglog.storage.index_check.key_check import NO_DIFF, KeyCheck, KeyDiff, Places, late

__all__ = [
    "NO_DIFF",
    "FileOutline",
    "HeldEntries",
    "IndexEntries",
    "IndexFacts",
    "KeyCheck",
    "KeyDiff",
    "Places",
    "chain_finding",
    "check_index",
    "compare_log",
    "index_facts",
    "index_findings",
    "late",
    "load_index",
    "outlined_or_damaged",
]
