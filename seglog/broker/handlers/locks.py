"""LOCK_BATCH_MQ and UNLOCK_BATCH_MQ."""

from __future__ import annotations

from typing import Final

from seglog.broker.access import Action, Resource
from seglog.broker.handlers.handler import Call, Handler
from seglog.broker.handlers.touching import named
from seglog.broker.state.state import BrokerState
from seglog.remoting.bodies import LockBatchBody, LockedQueuesBody
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Header, Request, Response, expect_body


def lock_queues(state: BrokerState, call: Call[Header]) -> Response:
    """Locks or renews; always succeeds and says which queues are the client's now."""
    body = expect_body(call.request, LockBatchBody)
    group, client_id = body.consumer_group, body.client_id
    before = {queue for queue in body.queues if state.locks.owner(group, queue) == client_id}
    taken = state.locks.lock(group, body.queues, client_id, is_lasting=call.peer.is_remote)
    is_recorded = False
    try:
        state.lock_record.record(state.now_ms())
        is_recorded = True
    finally:
        if not is_recorded:  # after a restart another client could have them as well
            state.locks.unlock(group, taken - before, client_id)
    return Response(ResponseCode.SUCCESS, body=LockedQueuesBody(taken))


def unlock_queues(state: BrokerState, call: Call[Header]) -> Response:
    """Gives back those that are the client's."""
    body = expect_body(call.request, LockBatchBody)
    state.locks.unlock(body.consumer_group, body.queues, body.client_id)
    state.lock_record.record(state.now_ms())
    return Response(ResponseCode.SUCCESS)


def _group(_header: Header, request: Request, _state: BrokerState) -> tuple[str]:
    return (expect_body(request, LockBatchBody).consumer_group,)


def _topics(_header: Header, request: Request, _state: BrokerState) -> list[str]:
    return sorted({queue.topic for queue in expect_body(request, LockBatchBody).queues})


_RULES: Final = (
    named(Resource.GROUP, _group, Action.SUB),
    named(Resource.TOPIC, _topics, Action.SUB),
)
HANDLERS: Final = (
    Handler(RequestCode.LOCK_BATCH_MQ, Header, lock_queues, _RULES),
    Handler(RequestCode.UNLOCK_BATCH_MQ, Header, unlock_queues, _RULES),
)
