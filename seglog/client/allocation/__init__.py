"""Which queues of a topic are a member's, when every member of its group computes it for itself.

Six strategies, equal to RocketMQ's own: a group may be shared with Java clients, and two members that
compute different shares consume a queue twice or not at all. Pure: lists in, a share out.

Called by consumers at each rebalance, over :func:`share_of`.
Truth: RocketMQ's classes ``AllocateMessageQueue*.java``, whose answers are in ``tests/golden``.
"""

from seglog.client.allocation.averagely import AllocateAveragely as AllocateAveragely
from seglog.client.allocation.strategy import AllocationStrategy as AllocationStrategy
from seglog.client.allocation.strategy import share_of as share_of
