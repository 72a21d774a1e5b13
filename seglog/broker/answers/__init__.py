"""Answers that do not keep the thread that asked: an event loop's must never wait.

``answering`` is the way of a request: handlers run at once, and what would have to wait for the disk goes
``aside``, to a thread that may. ``held_answer`` is a pull in the table of held pulls; ``send_deadlines`` ends
the wait of sends whose disk is slow.

Called by the broker.
Truth: the log and the tables; an answer says that they are on the disk.
"""

from seglog.broker.answers.held_answer import HeldAnswer as HeldAnswer
