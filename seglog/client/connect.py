"""Makes the client of a producer or consumer from its target: a broker, address, link or client."""

from __future__ import annotations

from typing import TypeAlias, TypeGuard

from seglog.arguments import as_doing, as_flag, as_unicode, refusal
from seglog.client.client import Client
from seglog.client.home.home import Home
from seglog.client.home.virtual_home import VirtualHome
from seglog.client.links.client_ids import LOOPBACK, as_name, named_client_id
from seglog.client.links.link import Link
from seglog.client.links.local_link import LocalLink
from seglog.clock import VirtualClock
from seglog.errors import InvalidArgumentError
from seglog.remoting.dispatcher import Dispatcher

Target: TypeAlias = Client | Dispatcher | Link | str
"""A shared client, or what to make one from: a broker in this process, a link to one, the address of a name
server, ``host:port``, several of these separated by ``;``, or the HTTP address of a list of them:
``http://host:port/rocketmq/nsaddr``."""


def client_for(target: Target, *, in_loop: bool = False, keeps_its_name: bool = False) -> tuple[Client, bool]:
    """Returns a client, and whether it was made here, so that the caller must close it.

    Args:
        target: The argument of the application.
        in_loop: As for :func:`make_client`.
        keeps_its_name: Likewise; a given client or link has its name already.

    Raises:
        InvalidArgumentError: As :func:`make_client`.
    """
    if isinstance(target, Client):
        return target, False
    keeps_its_name = keeps_its_name and not is_link(target)
    return make_client(target, in_loop=in_loop, keeps_its_name=keeps_its_name), True


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

    Its id at brokers is formed as in Java: ``address@process#life``, or ``address@name`` if it has a name,
    followed by ``@unit`` if it has a unit.

    Args:
        target: A broker in this process, a link to one, or the address of a name server, or of a list of
            them that is asked for by HTTP.
        home: Its home; None for the thread that clients of a process share, or for the virtual time of a
            broker on virtual time.
        in_loop: Whether its home is the event loop that runs the caller, instead of that thread. Use it in
            ``async with`` then.
        client_id: Its whole id; by default made from the names.
        instance_name: The instance in its id; by default process and life.
        unit_name: The unit in its id, for clusters that are divided into units.
        keeps_its_name: Whether its id is the same after a restart, ``address@DEFAULT`` without a name, as for
            Java's broadcasting consumers.
        principal: As for ``LocalLink``; only for a broker in this process.

    Raises:
        InvalidArgumentError: ``target`` is none of these; a name is not text, cannot be sent, or is blank;
            names were given together with an id, or an id or names for a link, which has one; a principal was
            given without a broker; or no event loop runs here with ``in_loop``.
    """
    as_flag("in_loop", in_loop)
    is_named = _is_named(client_id, instance_name, unit_name, keeps_its_name=keeps_its_name)
    if home is not None:
        as_doing("home", home, ("post", "is_here"), "a Home, such as LoopHome(loop)")

    def id_at(address: str) -> str | None:
        if client_id is not None or not is_named:
            return client_id
        return named_client_id(address, instance_name, unit_name, keeps_its_name=keeps_its_name)

    if is_link(target) and (is_named or client_id is not None):
        raise InvalidArgumentError(
            "a client of a link has one id already, the link's", help="make the link with the client_id"
        )
    if principal is not None and not is_broker(target):
        raise refusal("principal", principal, "None but for a broker in this process")
    if isinstance(target, str):
        from seglog.client.home.loop_home import LoopHome
        from seglog.client.links.addresses import own_address
        from seglog.client.links.lookup import Lookup, is_lookup
        from seglog.client.links.remote_link import RemoteLink

        loop_home = home or _real_home(in_loop=in_loop)
        if not isinstance(loop_home, LoopHome):
            raise InvalidArgumentError("a client of an address lives in an event loop")
        names = Lookup(target, unit_name) if is_lookup(target) else target
        remote = RemoteLink(names, loop_home, id_at(own_address()))
        client = Client(remote, loop_home)
        remote.serve(client.on_notice, client.on_request, client.on_event)
        return client
    if is_link(target):
        link = target
    elif is_broker(target):
        link = LocalLink(target, id_at(LOOPBACK), principal=principal)
    else:
        raise refusal(
            "target",
            target,
            "a broker in this process, the address of a name server (host:port), a link or a Client",
            'give several addresses as one text, "one:9876;other:9876"' if _are_texts(target) else None,
        )
    return _begun(link, home or _virtual_home(link) or _real_home(in_loop=in_loop))


def _is_named(
    client_id: str | None, instance_name: str | None, unit_name: str | None, *, keeps_its_name: bool
) -> bool:
    """Returns whether the id is made from names; checks them all."""
    as_flag("keeps_its_name", keeps_its_name)
    if instance_name is not None:
        as_name("instance_name", instance_name)
    if unit_name is not None:
        as_unicode("unit_name", unit_name)
    is_named = instance_name is not None or unit_name is not None or keeps_its_name
    if client_id is not None:
        as_name("client_id", client_id)
        if is_named:
            raise InvalidArgumentError(
                "a client has one id already: names cannot be put into it",
                help="give client_id, or instance_name, unit_name and keeps_its_name",
            )
    return is_named


def _are_texts(target: object) -> bool:
    return isinstance(target, list | tuple | set) and all(isinstance(one, str) for one in target)


def is_link(target: object) -> TypeGuard[Link]:
    """Whether requests can be sent through it."""
    return not isinstance(target, type) and callable(getattr(target, "invoke", None))


def is_broker(target: object) -> TypeGuard[Dispatcher]:
    """Whether it answers requests in this process."""
    return not isinstance(target, type) and callable(getattr(target, "dispatch", None))


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
