"""Reports: a check as one page that needs nothing else.

Called by ``seglog report``.
Truth: the check that it draws; it looks at no store.
"""

from seglog.doctor.report.html_report import render_report as render_report
