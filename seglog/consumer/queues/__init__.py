"""The queues of a member: taken and given back, committed, and kept under lock.

Called by the members of groups.
Truth: memory only; brokers have what is committed, and know who has a lock.
"""
