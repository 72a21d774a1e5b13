"""Reports: a check as one self-contained HTML page.

Called by ``seglog report``.
Truth: the check that the page shows; this room reads no store.
"""

from seglog.doctor.report.html_report import render_report as render_report
