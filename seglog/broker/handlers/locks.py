"""LOCK_BATCH_MQ and UNLOCK_BATCH_MQ."""

from __future__ import annotations

from typing import Final

from seglog.broker.handlers.handler import Call, Handler
from seglog.broker.state.state import BrokerState
from seglog.remoting.bodies import LockBatchBody, LockedQueuesBody
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Header, Response, expect_body


def lock_queues(state: BrokerState, call: Call[Header]) -> Response:
    """Locks or renews; always succeeds and says which queues are the client's now."""
    body = expect_body(call.request, LockBatchBody)
    taken = state.locks.lock(body.consumer_group, body.queues, body.client_id)
    return Response(ResponseCode.SUCCESS, body=LockedQueuesBody(taken))


def unlock_queues(state: BrokerState, call: Call[Header]) -> Response:
    """Gives back those that are the client's."""
    body = expect_body(call.request, LockBatchBody)
    state.locks.unlock(body.consumer_group, body.queues, body.client_id)
    return Response(ResponseCode.SUCCESS)


HANDLERS: Final = (
    Handler(RequestCode.LOCK_BATCH_MQ, Header, lock_queues),
    Handler(RequestCode.UNLOCK_BATCH_MQ, Header, unlock_queues),
)
