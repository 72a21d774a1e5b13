"""Answers that do not block the calling thread: the thread of an event loop must never wait.

``answering`` carries a request out: handlers run at once, and work that has to wait for the disk is passed to
``aside``, to a thread that may wait. ``held_answer`` is a pull in the table of held pulls; ``send_deadlines``
ends the wait of sends whose disk is slow.

Called by the broker.
Truth: the log and the tables; an answer is given once they are on the disk.
"""

from seglog.broker.answers.held_answer import HeldAnswer as HeldAnswer
