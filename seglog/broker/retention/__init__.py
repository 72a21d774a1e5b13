"""Retention: the old files to delete, the groups that still need them, and the fate of needed messages.

Holds the policy, its impact in queue offsets, the files of parked messages, and the refusal of sends on a
full disk.

Called by the broker's background tasks and by the doctor.
Truth: the store's queues and the groups' offsets.
"""

from seglog.broker.retention.retention_impact import Doomed as Doomed
from seglog.broker.retention.retention_impact import Standing as Standing
from seglog.broker.retention.retention_impact import Victim as Victim
from seglog.broker.retention.retention_impact import Why as Why
from seglog.broker.retention.retention_impact import by_group as by_group
from seglog.broker.retention.retention_impact import plan as plan
from seglog.broker.retention.retention_side_files import PARKED as PARKED
from seglog.broker.retention.retention_side_files import SUFFIX as SUFFIX
from seglog.broker.retention.retention_side_files import park_victims as park_victims
from seglog.broker.retention.retention_side_files import parked_file as parked_file
