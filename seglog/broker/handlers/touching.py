"""Rules that find the resources that a request touches: each has a kind, actions, and a source of names.

A handler has one or more rules. The rules here read a field of the header; a handler whose body names topics
or groups has rules of its own in its module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeAlias, TypeVar

from seglog.broker.access import Action, Resource, Touch, touch
from seglog.broker.state.state import BrokerState
from seglog.remoting.command import Header, Request

H_contra = TypeVar("H_contra", contravariant=True)
N = TypeVar("N")
Names: TypeAlias = Callable[[H_contra, Request, BrokerState], Iterable[str | None]]
"""Finds names of topics or groups; None for all, or for resources that are reached without being named."""


@dataclass(frozen=True, slots=True)
class Rule(Generic[H_contra]):
    """Finds touches of one kind.

    Attributes:
        resource: The kind of its touches.
        actions: A permission for any of these is enough.
        names: Finds names in header and body, and in the broker's state if these refer to it.
    """

    resource: Resource
    actions: frozenset[Action]
    names: Names[H_contra]

    def find(self, header: H_contra, request: Request, state: BrokerState) -> Iterator[Touch]:
        """Yields the touches of a request.

        Raises:
            ProtocolError: The body is not one of the request code.
        """
        for name in self.names(header, request, state):
            yield touch(self.resource, name, self.actions)


class _OfTopic(Protocol):
    @property
    def topic(self) -> str:
        """A topic."""


class _OfGroup(Protocol):
    @property
    def group(self) -> str:
        """A group."""


class _OfConsumerGroup(Protocol):
    @property
    def consumer_group(self) -> str:
        """A group of consumers."""


def named(resource: Resource, names: Names[N], *actions: Action) -> Rule[N]:
    """Returns the rule of resources whose names a function finds."""
    return Rule(resource, frozenset(actions), names)


def of_topic(*actions: Action) -> Rule[_OfTopic]:
    """Returns the rule of the topic that a header names."""
    return named(Resource.TOPIC, lambda header, _request, _state: (header.topic,), *actions)


def of_group(*actions: Action) -> Rule[_OfGroup]:
    """Returns the rule of the group that a header names."""
    return named(Resource.GROUP, lambda header, _request, _state: (header.group,), *actions)


def of_consumer_group(*actions: Action) -> Rule[_OfConsumerGroup]:
    """Returns the rule of the consumer group that a header names."""
    return named(Resource.GROUP, lambda header, _request, _state: (header.consumer_group,), *actions)


def of_every(resource: Resource, *actions: Action) -> Rule[Header]:
    """Returns the rule of a request about all resources of a kind, or those that it does not name."""
    return named(resource, lambda _header, _request, _state: (None,), *actions)


def of_cluster(*actions: Action) -> Rule[Header]:
    """Returns the rule of a request about the broker itself."""
    return of_every(Resource.CLUSTER, *actions)
