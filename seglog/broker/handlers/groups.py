"""UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, DELETE_SUBSCRIPTIONGROUP and UPDATE_AND_GET_GROUP_FORBIDDEN.

Source: ``AdminBrokerProcessor.java updateAndCreateSubscriptionGroup, deleteSubscriptionGroup,
updateAndGetGroupForbidden``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from seglog.broker.access import Action, Resource
from seglog.broker.handlers.handler import Call, Handler, check_listed
from seglog.broker.handlers.touching import named, of_group, of_topic
from seglog.broker.state.state import BrokerState
from seglog.broker.tables.attributes import GROUP_ATTRIBUTES, alter_named_attributes
from seglog.broker.tables.groups import group_name_problem
from seglog.errors import InvalidArgumentError
from seglog.remoting.admin_bodies import GroupListBody
from seglog.remoting.client_headers import GroupForbiddenHeader
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Header, Request, Response, expect_body, refuse
from seglog.remoting.headers import DeleteGroupHeader
from seglog.remoting.heartbeat import GroupForbiddenBody
from seglog.remoting.subscription_group import SubscriptionGroup


def create_group(state: BrokerState, call: Call[Header]) -> Response:
    """Creates a group or replaces its settings; without a body there is nothing to do, as in RocketMQ."""
    if call.request.body is None:
        return Response(ResponseCode.SUCCESS)
    group = expect_body(call.request, SubscriptionGroup)
    return _create(state, (group,))


def create_groups(state: BrokerState, call: Call[Header]) -> Response:
    """Creates groups or replaces their settings: all of them, or none if a name is not valid."""
    groups = expect_body(call.request, GroupListBody).groups
    check_listed(len(groups), "groups")
    return _create(state, groups)


def delete_group(state: BrokerState, call: Call[DeleteGroupHeader]) -> Response:
    """Deletes a group, and what it has committed if that is asked; one that does not exist is deleted too."""
    header = call.header
    if state.groups.get(header.group_name) is not None:
        state.groups.delete(header.group_name)
    else:
        state.groups.permit(header.group_name)
    state.figures.forget_group(header.group_name)
    if header.cleans_offsets:
        state.offsets.delete(header.group_name, client_id=call.peer.client_id)
    elif state.config.release.revives_deleted_groups:
        state.groups.find(header.group_name)
    return Response(ResponseCode.SUCCESS)


def forbid_group(state: BrokerState, call: Call[GroupForbiddenHeader]) -> Response:
    """Says whether a group may read a topic, and sets it before if that is asked."""
    header = call.header
    if header.is_readable is not None:
        state.groups.forbid(header.group, header.topic, not header.is_readable)
    is_readable = not state.groups.is_forbidden(header.group, header.topic)
    body = GroupForbiddenBody(header.group, header.topic, is_readable)
    return Response(ResponseCode.SUCCESS, body=body, remark="")


def _create(state: BrokerState, groups: Iterable[SubscriptionGroup]) -> Response:
    """Creates groups; their attributes are given as changes, as for topics."""
    altered: list[SubscriptionGroup] = []
    for group in groups:
        problem = group_name_problem(group.name)
        if problem is not None:
            return refuse(ResponseCode.INVALID_PARAMETER, problem)
        known = state.groups.get(group.name)
        try:
            before = None if known is None else known.attributes
            attributes = alter_named_attributes(before, group.attributes, GROUP_ATTRIBUTES)
        except InvalidArgumentError as error:
            return refuse(ResponseCode.SYSTEM_ERROR, str(error))
        altered.append(replace(group, attributes=attributes))
    state.groups.put_all(altered)
    return Response(ResponseCode.SUCCESS)


def _created(_header: Header, request: Request, _state: BrokerState) -> tuple[str, ...]:
    return () if request.body is None else (expect_body(request, SubscriptionGroup).name,)


def _all_created(_header: Header, request: Request, _state: BrokerState) -> list[str]:
    return [group.name for group in expect_body(request, GroupListBody).groups]


def _deleted(header: DeleteGroupHeader, _request: Request, _state: BrokerState) -> tuple[str]:
    return (header.group_name,)


HANDLERS: Final = (
    Handler(
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
        Header,
        create_group,
        (named(Resource.GROUP, _created, Action.CREATE),),
    ),
    Handler(
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
        Header,
        create_groups,
        (named(Resource.GROUP, _all_created, Action.CREATE),),
    ),
    Handler(
        RequestCode.DELETE_SUBSCRIPTIONGROUP,
        DeleteGroupHeader,
        delete_group,
        (named(Resource.GROUP, _deleted, Action.DELETE),),
    ),
    Handler(
        RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN,
        GroupForbiddenHeader,
        forbid_group,
        (of_group(Action.UPDATE), of_topic(Action.UPDATE)),
    ),
)
