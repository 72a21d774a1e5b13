"""Delays: the levels, the offset up to which each was delivered, and the delivery of due messages.

Called by the broker's background tasks.
Truth: the log; deliveries after the last save of the table are found there.
"""

from seglog.broker.delay.delay_levels import DelayLevels as DelayLevels
from seglog.broker.delay.delay_offsets import DelayOffsets as DelayOffsets
