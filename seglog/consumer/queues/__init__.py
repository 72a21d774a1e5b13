"""The queues of a member: taking and releasing them, commits, and their locks.

Called by the members of groups.
Truth: memory only; brokers have the committed offsets and the locks.
"""
