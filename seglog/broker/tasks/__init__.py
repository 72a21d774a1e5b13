"""Tasks in the background: what a broker does when its time has come, on a clock that is an argument.

Called by the broker; delay, offsets and retention bring their tasks.
Truth: none; a task that is late is done at once.
"""
