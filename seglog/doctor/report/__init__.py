"""Reports: a check as one page that needs nothing else.

Called by ``seglog report``.
Truth: the check that it draws; it looks at no store.
"""

from __future__ import annotations

from seglog.doctor.report.html_report import render_report

__all__ = [
    "render_report",
]
