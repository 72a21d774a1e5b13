"""Plans: what a repair would do, its application for good, and what an earlier one left unfinished.

Called by repairs and checks.
Truth: the undo pack that is written before any step.
"""

from seglog.doctor.plans.actions import Action as Action
from seglog.doctor.plans.unfinished import unfinished_findings as unfinished_findings
