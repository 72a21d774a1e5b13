"""The queues of a client: its share if the broker allocates queues, and its queue locks.

RocketMQ's broker has two strategies, as here, and allocates by no other. It answers the first requests about
a topic with nothing until it has the route from its name server.

Source: ``QueryAssignmentProcessor.java``; ``AdminBrokerProcessor.java lockBatchMQ, unlockBatchMQ``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from seglog.broker.access import Action, Resource
from seglog.broker.handlers.handler import Answer, Call, Handler, check_listed
from seglog.broker.handlers.touching import named
from seglog.broker.state.state import BrokerState
from seglog.errors import InvalidArgumentError
from seglog.remoting.allocation import (
    AllocateAveragely,
    AllocateAveragelyByCircle,
    AllocationStrategy,
    AssignmentsBody,
    QueryAssignmentBody,
    QueueAssignment,
    RequestMode,
    RequestModeBody,
    in_order,
    share_of,
)
from seglog.remoting.bodies import LockBatchBody, LockedQueuesBody
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Header, Request, Response, expect_body, refuse
from seglog.remoting.heartbeat import MessageModel
from seglog.remoting.later import Deferred
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.topics import MAX_QUEUES, PERM_READ
from seglog.storage.format.names import LMQ_PREFIX, RETRY_PREFIX
from seglog.storage.threads import may_wait

_STRATEGIES: Final[Mapping[str, AllocationStrategy]] = {
    each.name: each for each in (AllocateAveragely(), AllocateAveragelyByCircle())
}
_MOST_LOCKS: Final = 4 * MAX_QUEUES
"""Most queues of one request: a client asks for all queues of its group at a broker at once."""


def lock_queues(state: BrokerState, call: Call[Header]) -> Answer:
    """Locks or renews; always succeeds and says which queues are the client's now."""
    body = _locks_of(call)
    group, client_id = body.consumer_group, body.client_id
    before = {queue for queue in body.queues if state.locks.owner(group, queue) == client_id}
    taken = state.locks.lock(group, body.queues, client_id, is_lasting=call.peer.is_remote)

    def give_back() -> None:  # unrecorded, they could be given to another client too after a restart
        state.locks.unlock(group, taken - before, client_id)

    return _recorded(state, call, Response(ResponseCode.SUCCESS, body=LockedQueuesBody(taken)), give_back)


def unlock_queues(state: BrokerState, call: Call[Header]) -> Answer:
    """Gives back those that are the client's."""
    body = _locks_of(call)
    state.locks.unlock(body.consumer_group, body.queues, body.client_id)
    return _recorded(state, call, Response(ResponseCode.SUCCESS), lambda: None)


def _locks_of(call: Call[Header]) -> LockBatchBody:
    """Returns the queues to lock or to unlock.

    Raises:
        ProtocolError: There are too many for one request.
        WouldWaitError: The work takes long, and the calling thread may not wait.
    """
    body = expect_body(call.request, LockBatchBody)
    check_listed(len(body.queues), "queues", _MOST_LOCKS)
    return body


def _recorded(
    state: BrokerState, call: Call[Header], response: Response, give_back: Callable[[], None]
) -> Answer:
    """Returns the answer once the owners are recorded, or a deferred one.

    Args:
        state: The parts of the broker.
        call: The request.
        response: The answer.
        give_back: Called if the record cannot be written.
    """
    record = state.lock_record
    if not record.is_due:
        return response
    if may_wait():
        is_recorded = False
        try:
            record.record(state.now_ms())
            is_recorded = True
        finally:
            if not is_recorded:
                give_back()
        return response
    answer: Deferred[Response] = Deferred()

    def told(error: Exception | None) -> None:
        if error is not None:
            give_back()
        answer.resolve(response if error is None else state.refusals.of(call.request.code, error))

    record.when_recorded(told)
    return answer


def query_assignment(state: BrokerState, call: Call[Header]) -> Response:
    """Says which queues of a topic are a client's, where it leaves that to the broker."""
    body = expect_body(call.request, QueryAssignmentBody)
    queues = _share(state, body)
    assignments = None if queues is None else tuple(QueueAssignment(queue) for queue in in_order(queues))
    return Response(ResponseCode.SUCCESS, body=AssignmentsBody(assignments))


def set_request_mode(state: BrokerState, call: Call[Header]) -> Response:
    """Notes how a group gets the messages of a topic, which can be by pulling alone."""
    body = expect_body(call.request, RequestModeBody)
    if body.topic.startswith(RETRY_PREFIX):
        return refuse(ResponseCode.NO_PERMISSION, "retry topic is not allowed to set mode")
    if state.topics.get(body.topic) is None:
        return refuse(ResponseCode.TOPIC_NOT_EXIST, f"topic[{body.topic}] not exist")
    if state.groups.find(body.consumer_group) is None:
        return refuse(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "subscription group does not exist")
    if body.mode is not RequestMode.PULL:
        return refuse(
            ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
            f"{body.mode.value} is not served here: {body.consumer_group} can consume {body.topic} by PULL",
        )
    state.request_modes.put(body)
    return Response(ResponseCode.SUCCESS)


def _share(state: BrokerState, body: QueryAssignmentBody) -> Iterable[MessageQueue] | None:
    """Returns a client's queues; None if they are not known, so that it keeps its present queues."""
    is_shared = body.message_model is not MessageModel.BROADCASTING
    queues = _queues(state, body.topic, has_light=is_shared)
    if queues is None or not is_shared:
        return queues
    group, strategy = state.clients.consumers(body.consumer_group), _STRATEGIES.get(body.strategy_name)
    if group is None or strategy is None or not queues:
        return None
    members = [client.client_id for client in group.clients.values()]
    try:
        return share_of(strategy, body.consumer_group, body.client_id, queues, members)
    except InvalidArgumentError:
        return None


def _queues(state: BrokerState, topic: str, *, has_light: bool) -> list[MessageQueue] | None:
    """Returns the readable queues of a topic; None if the topic does not exist."""
    broker_name, known = state.config.broker_name, state.topics.get(topic)
    if has_light and topic.startswith(LMQ_PREFIX):
        return [MessageQueue(topic, broker_name, 0)]
    if known is None:
        return None
    known.check_listed()  # clients make an object of each queue
    count = known.read_queue_nums if known.perm & PERM_READ else 0
    return [MessageQueue(topic, broker_name, number) for number in range(count)]


def _group(_header: Header, request: Request, _state: BrokerState) -> tuple[str]:
    return (expect_body(request, LockBatchBody).consumer_group,)


def _topics(_header: Header, request: Request, _state: BrokerState) -> list[str]:
    return sorted({queue.topic for queue in expect_body(request, LockBatchBody).queues})


def _asking_group(_header: Header, request: Request, _state: BrokerState) -> tuple[str]:
    return (expect_body(request, QueryAssignmentBody).consumer_group,)


def _asked_topic(_header: Header, request: Request, _state: BrokerState) -> tuple[str]:
    return (expect_body(request, QueryAssignmentBody).topic,)


def _set_group(_header: Header, request: Request, _state: BrokerState) -> tuple[str]:
    return (expect_body(request, RequestModeBody).consumer_group,)


def _set_topic(_header: Header, request: Request, _state: BrokerState) -> tuple[str]:
    return (expect_body(request, RequestModeBody).topic,)


_RULES: Final = (
    named(Resource.GROUP, _group, Action.SUB),
    named(Resource.TOPIC, _topics, Action.SUB),
)
_ASKS: Final = (
    named(Resource.GROUP, _asking_group, Action.SUB),
    named(Resource.TOPIC, _asked_topic, Action.SUB),
)
_SETS: Final = (
    named(Resource.GROUP, _set_group, Action.UPDATE),
    named(Resource.TOPIC, _set_topic, Action.UPDATE),
)
HANDLERS: Final = (
    Handler(RequestCode.QUERY_ASSIGNMENT, Header, query_assignment, _ASKS),
    Handler(RequestCode.SET_MESSAGE_REQUEST_MODE, Header, set_request_mode, _SETS),
    Handler(RequestCode.LOCK_BATCH_MQ, Header, lock_queues, _RULES),
    Handler(RequestCode.UNLOCK_BATCH_MQ, Header, unlock_queues, _RULES),
)
