"""Requests of clients to a broker that allocates for them, and the answers.

A consumer may leave the allocation to its broker (``setClientRebalance(false)`` in Java), which knows the
members of the group too. With each queue the broker returns the mode in which to get its messages.

Source: ``QueryAssignmentRequestBody.java``, ``QueryAssignmentResponseBody.java``,
``MessageQueueAssignment.java``, ``MessageRequestMode.java``, ``SetMessageRequestModeRequestBody.java``.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from seglog.remoting.command import TypedBody
from seglog.remoting.heartbeat import MessageModel
from seglog.remoting.message_queue import MessageQueue


class RequestMode(enum.Enum):
    """The mode in which a consumer gets the messages of a queue."""

    PULL = "PULL"
    POP = "POP"


@dataclass(frozen=True, slots=True)
class QueryAssignmentBody(TypedBody):
    """Body of QUERY_ASSIGNMENT: requests a client's queues of a topic.

    Attributes:
        strategy_name: By which the queues are shared, as its strategy's ``name``.
        message_model: Whether they are shared at all.
    """

    topic: str
    consumer_group: str
    client_id: str
    strategy_name: str = ""
    message_model: MessageModel = MessageModel.CLUSTERING


@dataclass(frozen=True, slots=True)
class QueueAssignment:
    """A queue of a client, and the mode in which it gets its messages."""

    queue: MessageQueue
    mode: RequestMode = RequestMode.PULL


@dataclass(frozen=True, slots=True)
class AssignmentsBody(TypedBody):
    """Body of the answer.

    Attributes:
        assignments: In the order of their queues; empty if the client gets no queue. None if the broker
            cannot decide: the client keeps its queues.
    """

    assignments: tuple[QueueAssignment, ...] | None = None


@dataclass(frozen=True, slots=True)
class RequestModeBody(TypedBody):
    """Body of SET_MESSAGE_REQUEST_MODE: how a group gets the messages of a topic.

    Attributes:
        pop_share_queue_num: The number of further members that share a member's queues, in mode POP.
    """

    topic: str
    consumer_group: str
    mode: RequestMode = RequestMode.PULL
    pop_share_queue_num: int = 0
