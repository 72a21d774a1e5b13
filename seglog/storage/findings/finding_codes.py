"""Every code that a finding can have: how much it matters, what it means, and what would put it right.

``docs/findings.md`` is made from this table. A code is stable: programs match it, words around it may change.
"""

from __future__ import annotations

from typing import Final

from seglog.storage.findings.code import Code
from seglog.storage.findings.config_codes import CHECKPOINT_CODES, CONFIG_CODES
from seglog.storage.findings.file_codes import FILE_CODES
from seglog.storage.findings.index_codes import INDEX_CODES
from seglog.storage.findings.log_codes import LOG_CODES
from seglog.storage.findings.queue_codes import QUEUE_CODES
from seglog.storage.findings.timer_codes import TIMER_CODES

FAMILIES: Final[dict[str, dict[str, Code]]] = {
    "Commit log": LOG_CODES,
    "Queues": QUEUE_CODES,
    "Key index": INDEX_CODES,
    "Checkpoint, and how the store was left": CHECKPOINT_CODES,
    "Config, offsets, transactions": CONFIG_CODES,
    "Timer": TIMER_CODES,
    "Files and folders": FILE_CODES,
}
"""The codes by what they are about, for the page that is made of them."""

CODES: Final[dict[str, Code]] = {name: code for family in FAMILIES.values() for name, code in family.items()}
"""What each code stands for."""
