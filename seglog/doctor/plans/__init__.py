"""Plans of repairs, their application to the store, and the completion of unfinished ones.

Called by repairs and checks.
Truth: the undo pack that is written before any step.
"""

from seglog.doctor.plans.actions import Action as Action
from seglog.doctor.plans.unfinished import unfinished_findings as unfinished_findings
