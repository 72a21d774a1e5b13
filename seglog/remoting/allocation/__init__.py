"""Computes the share of a member in the queues of a topic, in every member or in the broker for all.

Six strategies, equal to RocketMQ's own: a group may be shared with Java clients, and two members that
compute different shares consume a queue twice or not at all. Pure: lists in, a share out. Also holds the
bodies of requests to a broker that allocates for its clients.

Called by consumers at each rebalance and by the broker, over :func:`share_of`.
Truth: RocketMQ's classes ``AllocateMessageQueue*.java``, whose answers are in ``tests/golden``.
"""

from seglog.remoting.allocation.assignment import AssignmentsBody as AssignmentsBody
from seglog.remoting.allocation.assignment import QueryAssignmentBody as QueryAssignmentBody
from seglog.remoting.allocation.assignment import QueueAssignment as QueueAssignment
from seglog.remoting.allocation.assignment import RequestMode as RequestMode
from seglog.remoting.allocation.assignment import RequestModeBody as RequestModeBody
from seglog.remoting.allocation.averagely import AllocateAveragely as AllocateAveragely
from seglog.remoting.allocation.averagely import AllocateAveragelyByCircle as AllocateAveragelyByCircle
from seglog.remoting.allocation.strategy import AllocationStrategy as AllocationStrategy
from seglog.remoting.allocation.strategy import in_order as in_order
from seglog.remoting.allocation.strategy import share_of as share_of
