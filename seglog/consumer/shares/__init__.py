"""The share of a member: its queues of the group, and the locks of queues that are consumed in order.

Called by the members of groups.
Truth: memory only; brokers have the members of a group and the locks.
"""
