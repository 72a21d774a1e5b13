"""Timed work: each task is a duty, on a clock that is an argument.

On real time each duty has a thread of its own; on a virtual clock the duties run while time is moved.

Called by brokers and clients.
Truth: none; a late duty runs at once.
"""

from seglog.schedule.duties import Duties as Duties
from seglog.schedule.duties import Duty as Duty
from seglog.schedule.periodic import Periodic as Periodic
from seglog.schedule.timers import AnyTimers as AnyTimers
from seglog.schedule.timers import Timer as Timer
from seglog.schedule.timers import Timers as Timers
