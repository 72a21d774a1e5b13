"""UPDATE_AND_CREATE_SUBSCRIPTIONGROUP and DELETE_SUBSCRIPTIONGROUP.

Source: ``AdminBrokerProcessor.java updateAndCreateSubscriptionGroup, deleteSubscriptionGroup``.
"""

from __future__ import annotations

from typing import Final

from seglog.broker.groups import group_name_problem
from seglog.broker.handlers.handler import Call, Handler
from seglog.broker.state import BrokerState
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Header, Response, expect_body, refuse
from seglog.remoting.headers import DeleteGroupHeader
from seglog.remoting.subscription_group import SubscriptionGroup


def create_group(state: BrokerState, call: Call[Header]) -> Response:
    """Creates a group or replaces its settings."""
    group = expect_body(call.request, SubscriptionGroup)
    problem = group_name_problem(group.name)
    if problem is not None:
        return refuse(ResponseCode.INVALID_PARAMETER, problem)
    state.groups.put(group)
    return Response(ResponseCode.SUCCESS)


def delete_group(state: BrokerState, call: Call[DeleteGroupHeader]) -> Response:
    """Deletes a group, and what it has committed if that is asked; one that is not there is deleted too."""
    header = call.header
    if state.groups.get(header.group_name) is not None:
        state.groups.delete(header.group_name)
    if header.cleans_offsets:
        state.offsets.delete(header.group_name, client_id=call.peer.client_id)
    return Response(ResponseCode.SUCCESS)


HANDLERS: Final = (
    Handler(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, Header, create_group),
    Handler(RequestCode.DELETE_SUBSCRIPTIONGROUP, DeleteGroupHeader, delete_group),
)
