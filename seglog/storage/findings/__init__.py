"""Findings: one value per fact about a store, with a stable code that programs can match.

Holds the table of codes (severity, meaning, advice), the value, and its text.

Called by everything that looks at a store, and by what shows the outcome.
Truth: the table; docs/findings.md is written from it.
"""

from seglog.storage.findings.code import Severity as Severity
from seglog.storage.findings.ending import ending_of as ending_of
from seglog.storage.findings.finding_text import MOST_QUOTED as MOST_QUOTED
from seglog.storage.findings.finding_text import counts_text as counts_text
from seglog.storage.findings.finding_text import findings_fields as findings_fields
from seglog.storage.findings.finding_text import place_text as place_text
from seglog.storage.findings.findings import Finding as Finding
from seglog.storage.findings.findings import refuses_repair as refuses_repair
from seglog.storage.findings.log_codes import LOG_CODES as LOG_CODES
from seglog.storage.findings.what_next import bytes_text as bytes_text
from seglog.storage.findings.what_next import next_command as next_command
from seglog.storage.findings.what_next import repair_with_length as repair_with_length
