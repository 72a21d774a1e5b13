"""Makes the client of a producer or consumer from what it was given: broker, address, link or client."""

from __future__ import annotations

from typing import TypeAlias, TypeGuard

from seglog.client.client import Client
from seglog.client.home.home import Home
from seglog.client.home.virtual_home import VirtualHome
from seglog.client.links.client_ids import LOOPBACK, named_client_id
from seglog.client.links.link import Link
from seglog.client.links.local_link import LocalLink
from seglog.clock import VirtualClock
from seglog.errors import InvalidArgumentError
from seglog.remoting.dispatcher import Dispatcher

Target: TypeAlias = Client | Dispatcher | Link | str
"""A client that is shared, or what one is made of: a broker in this process, a link to one, or the address of
a name server, ``host:port``, several with ``;`` between them."""


def client_for(target: Target, *, in_loop: bool = False) -> tuple[Client, bool]:
    """Returns a client, and whether it was made here, so that who asked for it has to close it.

    Args:
        target: What the application gave.
        in_loop: As for :func:`make_client`.

    Raises:
        InvalidArgumentError: As :func:`make_client`.
    """
    if isinstance(target, Client):
        return target, False
    return make_client(target, in_loop=in_loop), True


def make_client(
    target: Dispatcher | Link | str,
    home: Home | None = None,
    *,
    in_loop: bool = False,
    client_id: str | None = None,
    instance_name: str | None = None,
    unit_name: str | None = None,
    keeps_its_name: bool = False,
    principal: str | None = None,
) -> Client:
    """Makes a client.

    Brokers know it by an id as Java makes it: ``address@process#life``, or ``address@name`` where it has a
    name, with ``@unit`` behind where it has one.

    Args:
        target: A broker in this process, a link to one, or the address of a name server.
        home: Where it lives; None for the thread that clients of a process share, and for the virtual time
            of a broker that has it.
        in_loop: Whether it lives in the event loop that runs the caller, in place of that thread. Use it in
            ``async with`` then.
        client_id: What brokers know it by, whole; made of the names by default.
        instance_name: In its id; its process and life by default.
        unit_name: Behind its id, for clusters that are divided into units.
        keeps_its_name: Whether its id is the same after a restart, ``address@DEFAULT`` without a name: so it
            is of Java's consumers that broadcast.
        principal: As for ``LocalLink``.

    Raises:
        InvalidArgumentError: ``target`` is none of them; or names were given beside an id, or for a link,
            which has one; or no event loop runs here that it could live in.
    """
    is_named = instance_name is not None or unit_name is not None or keeps_its_name

    def id_at(address: str) -> str | None:
        if client_id is not None or not is_named:
            return client_id
        return named_client_id(address, instance_name, unit_name, keeps_its_name=keeps_its_name)

    if is_named and (client_id is not None or is_link(target)):
        raise InvalidArgumentError(
            "a client has one id already: names cannot be put into it",
            help="give client_id, or instance_name, unit_name and keeps_its_name",
        )
    if isinstance(target, str):
        from seglog.client.home.loop_home import LoopHome
        from seglog.client.links.addresses import own_address
        from seglog.client.links.remote_link import RemoteLink

        loop_home = home or _real_home(in_loop=in_loop)
        if not isinstance(loop_home, LoopHome):
            raise InvalidArgumentError("a client of an address lives in an event loop")
        remote = RemoteLink(target, loop_home, id_at(own_address()))
        client = Client(remote, loop_home)
        remote.serve(client.on_notice, client.on_request, client.on_event)
        return client
    if is_link(target):
        link = target
    elif is_broker(target):
        link = LocalLink(target, id_at(LOOPBACK), principal=principal)
    else:
        raise InvalidArgumentError(
            f"{type(target).__name__} is no broker: expected one, its address (host:port), a link or a Client"
        )
    return _begun(link, home or _virtual_home(link) or _real_home(in_loop=in_loop))


def is_link(target: object) -> TypeGuard[Link]:
    """Whether requests can be sent through it."""
    return callable(getattr(target, "invoke", None))


def is_broker(target: object) -> TypeGuard[Dispatcher]:
    """Whether it answers requests in this process."""
    return callable(getattr(target, "dispatch", None))


def _begun(link: Link, home: Home) -> Client:
    client = Client(link, home)
    link.serve(client.on_notice, client.on_request)
    return client


def _virtual_home(link: Link) -> Home | None:
    timers = getattr(link, "timers", None)
    if isinstance(link.clock, VirtualClock) and timers is not None:
        return VirtualHome(timers, link.clock)
    return None


def _real_home(*, in_loop: bool) -> Home:
    if not in_loop:
        from seglog.client.home.thread_home import thread_home

        return thread_home()
    from seglog.client.home.loop_home import LoopHome
    from seglog.remoting.later import running_loop

    loop = running_loop()
    if loop is None:
        raise InvalidArgumentError(
            "no event loop runs here that a client could live in",
            help="make it in a coroutine, or make one that is not async",
        )
    return LoopHome(loop)
