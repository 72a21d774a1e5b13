"""Queues that are open for writing: ConsumeQueue and batch ConsumeQueue over mapped files.

Holds their units in files of equal length, and how an opening makes each of them hold what recovery found.

Called by recovery and the writer.
Truth: the log. A unit is written in the critical section of its record.
"""
