"""What clients ask a broker that allocates for them, and how it answers.

A consumer may leave the allocation to its broker (``setClientRebalance(false)`` in Java), which knows the
members of the group as well. With each queue the broker says how messages are to be got from it.

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
    """How a consumer gets the messages of a queue."""

    PULL = "PULL"
    POP = "POP"


@dataclass(frozen=True, slots=True)
class QueryAssignmentBody(TypedBody):
    """Body of QUERY_ASSIGNMENT: which queues of a topic are a client's.

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
    """A queue that is a client's, and how it gets messages of it."""

    queue: MessageQueue
    mode: RequestMode = RequestMode.PULL


@dataclass(frozen=True, slots=True)
class AssignmentsBody(TypedBody):
    """Body of the answer.

    Attributes:
        assignments: In the order of their queues; none where the client is to have no queue. None where the
            broker cannot say: the client keeps what it has.
    """

    assignments: tuple[QueueAssignment, ...] | None = None


@dataclass(frozen=True, slots=True)
class RequestModeBody(TypedBody):
    """Body of SET_MESSAGE_REQUEST_MODE: how a group gets the messages of a topic.

    Attributes:
        pop_share_queue_num: With how many further members a member shares its queues, in mode POP.
    """

    topic: str
    consumer_group: str
    mode: RequestMode = RequestMode.PULL
    pop_share_queue_num: int = 0
