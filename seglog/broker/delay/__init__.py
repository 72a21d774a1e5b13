"""Delays: levels, the offsets up to which each was delivered, and delivery when the time has come.

Called by the broker's background tasks.
Truth: the log; what was delivered after the last save of the table is found there.
"""

from seglog.broker.delay.delay_levels import DelayLevels as DelayLevels
from seglog.broker.delay.delay_offsets import DelayOffsets as DelayOffsets
