"""Queues that are open for writing: ConsumeQueue and batch ConsumeQueue over mapped files.

Holds the units in files of equal length, and opens each queue with the units that recovery found.

Called by recovery and the writer.
Truth: the log. A unit is written in the critical section of its record.
"""
