"""The figures of a case, and in which unit the report shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Column:
    """One figure.

    Attributes:
        unit: What the report calls it.
        scale: How much of the figure is one of that unit.
        is_less_better: Whether a small figure is a good one.
        what: What it is where a case has several.
    """

    unit: str
    scale: float = 1
    is_less_better: bool = False
    what: str = ""


COLUMNS: Final = {
    "per_s": Column("k messages/s", 1e3),
    "bytes_per_s": Column("MB/s", 1e6, what="stored bytes"),
    "p50_us": Column("µs", is_less_better=True, what="p50"),
    "p99_us": Column("µs", is_less_better=True, what="p99"),
    "p999_us": Column("µs", is_less_better=True, what="p99.9"),
    "max_us": Column("µs", is_less_better=True, what="maximum"),
    "over_one": Column("× one thread", what="two threads over one"),
    "open_s": Column("s", is_less_better=True, what="whole log verified, without its sync"),
    "sync_s": Column("s", is_less_better=True, what="its sync"),
    "quick_s": Column("s", is_less_better=True, what="as opened by default, without its sync"),
    "log_bytes": Column("B a message", is_less_better=True, what="log"),
    "queue_bytes": Column("B a message", is_less_better=True, what="queues"),
    "index_bytes": Column("B a message", is_less_better=True, what="index"),
    "anonymous_mb": Column("MB", 1e6, is_less_better=True, what="anonymous memory, highest"),
    "import_ms": Column("ms", is_less_better=True, what="import seglog over an empty interpreter"),
    "help_ms": Column("ms", is_less_better=True, what="seglog --help"),
}
