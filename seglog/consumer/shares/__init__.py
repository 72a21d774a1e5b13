"""Which queues of its group a member has: its share, and the locks of the queues that are consumed in order.

Called by the members of groups.
Truth: memory only; brokers know the members of a group and who has a lock.
"""
