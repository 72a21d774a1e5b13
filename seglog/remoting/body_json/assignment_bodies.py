"""Bodies about the allocation of queues by a broker.

Source: ``QueryAssignmentRequestBody.java``, ``QueryAssignmentResponseBody.java``,
``MessageQueueAssignment.java``, ``SetMessageRequestModeRequestBody.java``.
"""

from __future__ import annotations

from typing import Final

from seglog.remoting.allocation import (
    AssignmentsBody,
    QueryAssignmentBody,
    QueueAssignment,
    RequestMode,
    RequestModeBody,
)
from seglog.remoting.body_json.body_codec import object_body
from seglog.remoting.body_json.fields import INT32, TEXT, JsonField, items_of, member_of, object_of
from seglog.remoting.body_json.queue_bodies import QUEUE
from seglog.remoting.heartbeat import MessageModel

QUERY_ASSIGNMENT: Final = object_body(
    QueryAssignmentBody,
    topic=JsonField("topic", TEXT),
    consumer_group=JsonField("consumerGroup", TEXT),
    client_id=JsonField("clientId", TEXT),
    strategy_name=JsonField("strategyName", TEXT),
    message_model=JsonField("messageModel", member_of(MessageModel)),
)
_ASSIGNMENT: Final = object_of(
    QueueAssignment, queue=JsonField("messageQueue", QUEUE), mode=JsonField("mode", member_of(RequestMode))
)
ASSIGNMENTS: Final = object_body(
    AssignmentsBody, assignments=JsonField("messageQueueAssignments", items_of(_ASSIGNMENT, tuple))
)
REQUEST_MODE: Final = object_body(
    RequestModeBody,
    topic=JsonField("topic", TEXT),
    consumer_group=JsonField("consumerGroup", TEXT),
    mode=JsonField("mode", member_of(RequestMode)),
    pop_share_queue_num=JsonField("popShareQueueNum", INT32),
)
