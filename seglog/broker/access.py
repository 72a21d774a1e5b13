"""The resources that a request is about to touch, as values, and the hook that is called before its handler.

    def only_billing(access: Access) -> None:
        if access.principal != "billing":
            raise NoPermissionError(f"{access.principal} may not {access.code.name}")

    Broker.open(path, before=only_billing)

The rules that find these resources are beside each handler. Actions and resources are those of RocketMQ's ACL
2.0, and some that ACL 2.0 leaves out: groups that are created or cloned from, groups of producers, further
queues that a message appears in, the topic of a record that is sent back, the group whose retry topic is
used.

Source: ``Action.java``, ``ResourceType.java``, ``DefaultAuthorizationContextBuilder.java``.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from seglog.arguments import as_doing, refusal
from seglog.remoting.codes import RequestCode
from seglog.remoting.peer import Peer
from seglog.storage.format.names import RETRY_PREFIX


class Action(enum.Enum):
    """An action on a resource; the values are RocketMQ's words in its policies."""

    PUB = "Pub"
    SUB = "Sub"
    CREATE = "Create"
    UPDATE = "Update"
    DELETE = "Delete"
    GET = "Get"
    LIST = "List"


class Resource(enum.Enum):
    """Kinds of resources; RocketMQ has no permissions for groups of producers."""

    TOPIC = "Topic"
    GROUP = "Group"
    PRODUCER_GROUP = "ProducerGroup"
    CLUSTER = "Cluster"


@dataclass(frozen=True, slots=True)
class Touch:
    """One resource that a request touches.

    Attributes:
        resource: Its kind.
        name: Its name; None for all resources of the kind, or for those that the request reaches without
            naming them, such as the topics that a group has offsets in. Besides named resources RocketMQ asks
            for no permission on these.
        actions: A permission for any of these is enough.
    """

    resource: Resource
    name: str | None
    actions: frozenset[Action]


@dataclass(frozen=True, slots=True)
class Access:
    """A request that is about to be handled.

    Attributes:
        peer: The client.
        code: The request code.
        touches: Each resource that it names or reaches, once for each set of actions; none in a heartbeat
            without groups, say.
    """

    peer: Peer
    code: RequestCode
    touches: tuple[Touch, ...]

    @property
    def principal(self) -> str | None:
        """The authenticated name of the client; None if it has none."""
        return self.peer.principal


Before: TypeAlias = Callable[[Access], None]
"""Called before each handler, in the calling thread; it must return at once, and raises to refuse."""
_POP_SEPARATOR: Final = "+"
"""Between group and topic in the name of a retry topic of POP; no name of a group has it."""


def as_before(value: Before) -> Before:
    """Returns the function to call before each handler.

    Raises:
        InvalidArgumentError: It cannot be called, or is a coroutine function, whose work would be done later.
    """
    call = getattr(value, "__call__", None)  # noqa: B004 - of an object it is what the next line looks at
    if inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(call):
        raise refusal("before", value, "a function that is done when it returns")
    return as_doing("before", value, ("__call__",), "a function that takes an Access")


def touch(resource: Resource, name: str | None, actions: frozenset[Action]) -> Touch:
    """Returns the touch of a resource; a retry topic is a part of its group.

    Consumers write to the retry topic of their group, and need no permission to publish for it.
    """
    if resource is not Resource.TOPIC or name is None or not name.startswith(RETRY_PREFIX):
        return Touch(resource, name, actions)
    group = name.removeprefix(RETRY_PREFIX).partition(_POP_SEPARATOR)[0]
    of_group = frozenset(Action.SUB if action is Action.PUB else action for action in actions)
    return Touch(Resource.GROUP, group, of_group)
