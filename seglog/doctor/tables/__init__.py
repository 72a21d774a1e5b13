"""Tables of a broker that is not running: config files as a check reads them, and where each group stands.

Called by checks, repairs and everything about groups.
Truth: the file, or its backup where the file cannot be read.
"""

from __future__ import annotations

from seglog.doctor.tables.config_tables import ConfigTables, load_tables
from seglog.doctor.tables.offset_table import GroupOffset, OffsetTable

__all__ = [
    "ConfigTables",
    "GroupOffset",
    "OffsetTable",
    "load_tables",
]
