"""The common base of all consumers: with a listener or polled, and of both faces."""

from __future__ import annotations

import threading
from abc import ABC
from collections.abc import Callable, Mapping
from contextlib import suppress
from inspect import Signature, cleandoc, signature
from pathlib import Path
from typing import Any, ClassVar, Final, Self, TypeVar
from weakref import WeakSet

from typing_extensions import override

from seglog.arguments import MAX_I32, as_int, as_kind, as_number, as_text
from seglog.client.client import Client
from seglog.client.connect import Target
from seglog.client.dropped import LoopEnd, watch
from seglog.client.home import (
    Flow,
    Steps,
    VirtualHome,
    Wait,
    await_for,
    check_may_wait,
    late,
    start,
    until,
    wait_here,
)
from seglog.client.member import wait_to_leave
from seglog.consumer.brokers import Brokers
from seglog.consumer.counts import Counts
from seglog.consumer.group_member import GroupMember
from seglog.consumer.offsets.first_offsets import FirstOffsets
from seglog.consumer.offsets.local_offset_store import MOST_BYTES, LocalOffsetStore, local_offsets_path
from seglog.consumer.offsets.offset_store import BrokerOffsetStore, OffsetStore
from seglog.consumer.options import (
    ELSEWHERE,
    OF_LISTENERS,
    OptionsOf,
    arguments_text,
    check_options,
    options_text,
    with_options,
)
from seglog.consumer.settings import ConsumerSettings, timestamp_ms_of
from seglog.errors import ConsumerError, InvalidArgumentError, SeglogError
from seglog.logs import logger
from seglog.other_names import OF_LISTENER_CALLS, OF_LISTENING, NamesElsewhere
from seglog.remoting.later import is_loop_here
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.files import FolderUse, RealFiles

DEFAULT_AGO_MS: Final = 30 * 60_000
"""Default of ``consumeTimestamp``: this long before the consumer is made."""

_BROADCASTING: Final[WeakSet[MemberParts]] = WeakSet()
"""The started members of this process that keep their offsets in a file."""

R = TypeVar("R")
_log = logger(__name__)


class MemberParts(NamesElsewhere, ABC):
    """One member of a consumer group; a subclass sets it up with :meth:`_set_up`."""

    _elsewhere: ClassVar[Mapping[str, str]] = OF_LISTENING
    _arguments_elsewhere: ClassVar[Mapping[str, Mapping[str, str]]] = OF_LISTENER_CALLS
    _settings_elsewhere = ELSEWHERE
    _is_awaited: ClassVar[bool]
    _use: ClassVar[str] = "start(), or run_until_idle()"
    """The call that makes it consume, named in the warning about a consumer that never did."""
    _goes_on_alone: ClassVar[bool] = True
    """Whether it consumes on after its last reference is gone, as consumers with listeners do in Java."""
    _options: ClassVar[OptionsOf] = OF_LISTENERS
    __signature__: ClassVar[Signature]

    @override
    def __init_subclass__(cls) -> None:
        """Adds the settings to the signature and the help of a consumer class."""
        super().__init_subclass__()
        if cls.__init__ is object.__init__:  # a face class, which is not a consumer by itself
            return
        cls.__signature__ = with_options(signature(cls.__init__), cls._options)
        if cls.__doc__ and "__init__" not in vars(cls):
            own = cleandoc(cls.__doc__)
            if "\nArgs:" not in own:  # a kind of consumer: its help has to be complete
                made = next(kind for kind in cls.__mro__ if "__init__" in vars(kind))
                own = f"{own}\n\n{arguments_text(made.__doc__ or '')}"
            cls.__doc__ = f"{own}\n\n{options_text(cls._options)}\n"

    def __new__(cls, *args: object, **options: object) -> Self:
        """Makes a consumer; errors in the call name the class that was called.

        Raises:
            TypeError: An argument is missing, or there is one too many.
        """
        own = signature(cls.__init__).parameters.keys()
        check_options(cls.__name__, options.keys() - own, cls._options)
        try:
            cls.__signature__.bind(*args, **options)
        except TypeError as error:
            raise TypeError(f"{cls.__name__}(): {error}") from None
        return super().__new__(cls)

    def _set_up(self, target: Target, client: Client, member: GroupMember, *, is_own: bool) -> None:
        """Sets the consumer up from its parts.

        Args:
            target: The argument of the application.
            client: The client that it belongs to.
            member: Its member of the group.
            is_own: Whether the client is closed with it.
        """
        self._client, self._is_own, self._member = client, is_own, member
        self._home = client.home
        self._wait: Wait = await_for if self._is_awaited else wait_here
        self._beginning: Flow[None] | None = None
        self._is_closed = False
        self._close_lock = threading.Lock()  # never taken in a forked child
        self._leaving: Flow[None] | None = None
        self._has_left = False
        self._asked: dict[str, Flow[Any]] = {}
        self._folder_use: FolderUse | None = None
        is_watched = isinstance(target, str) or (is_own and not self._goes_on_alone)
        self._end_if_dropped = watch(self, client) if is_watched else None

    @override
    def __repr__(self) -> str:
        state = " closed" if self._is_closed else f" with {len(self.queues)} queues"
        return f"<{type(self).__name__} {self.group} of client {self.client_id}{state}>"

    @property
    def client_id(self) -> str:
        """The id of its client, which names it in the group."""
        return self._client.client_id

    @property
    def group(self) -> str:
        """The name of the consumer group."""
        return self._member.group

    @property
    def queues(self) -> tuple[MessageQueue, ...]:
        """The queues that are assigned to it, in order."""
        return self._member.queues

    @property
    def counts(self) -> Counts:
        """Counts of messages since the consumer was made."""
        return self._member.counts

    async def _position(self, queue: MessageQueue) -> int:
        self._check_open()
        position = self._member.position(as_queue("queue", queue))
        if position is not None:
            return position
        self._check_may_wait()
        return await self._ask(self._member.begin_of(queue), "a question of a position")

    async def _committed(self, queue: MessageQueue) -> int | None:
        self._check_open()
        self._check_may_wait()
        asking = self._member.committed(as_queue("queue", queue))
        return await self._ask(asking, "a question of an offset")

    async def _lag(self) -> Mapping[MessageQueue, int]:
        self._check_open()
        self._check_may_wait()
        return await self._ask(self._member.lag(), "a question of a lag")

    async def _ask(self, steps: Steps[R], name: str) -> R:
        """Returns the result of a coroutine of the home, or raises its error, which is not logged."""
        try:
            self._client.check_live()
        except SeglogError:
            steps.close()  # it was never begun; this avoids the warning
            raise
        asked = start(self._home, outcome_of(steps), name, may_run_now=self._client.is_in_process)
        outcome = await self._wait(self._home, asked)
        if isinstance(outcome, SeglogError):
            raise outcome
        return outcome

    async def _start(self, until_ms: float | None = None) -> None:
        """Joins the group.

        Args:
            until_ms: Monotonic time until which the answers needed first must arrive; None for no limit.

        Raises:
            TimeoutError: It takes longer. The requests continue, and the next call waits for the same
                answers.
        """
        self._check_not_begun()
        home, member = self._home, self._member
        self._refuse_in_loop()
        if member.is_filtered:
            self._check_may_wait()
        self._client.check_live()
        self._client.claim(member)
        try:
            member.load_offsets()
            if member.is_filtered:
                refusal = await self._known(member.refusal, "a check of subscriptions", until_ms)
                if refusal is not None:
                    raise refusal
            if member.is_seeing_first and not (isinstance(home, VirtualHome) and home.is_here()):
                await self._known(member.see_topics, "a look at topics", until_ms)
            self._asked.clear()
            self._begin_once()
            if self._goes_on_alone:
                self._keep()
            self._warn_if_shared()
        finally:
            if self._beginning is None:
                self._client.release(member)

    def _check_not_begun(self) -> None:
        if self._beginning is not None or self._is_closed:
            raise ConsumerError("a consumer can be started once")

    def _begin_once(self) -> None:
        """Begins the member, unless another call began or closed it while this one waited."""
        with self._close_lock:  # a listener may close it before start() has returned, and finds it begun
            self._check_not_begun()
            self._beginning = start(self._home, late(self._member.begin), f"start of group {self.group}")
            self._watch_loop()

    async def _known(self, ask: Callable[[], Steps[R]], name: str, until_ms: float | None) -> R:
        """Returns an answer that is needed before the start; the request is made once."""
        asked: Flow[Any] | None = self._asked.get(name)
        if asked is None:
            asked = self._asked[name] = start(self._home, ask(), name)
        try:
            found: R = await self._wait(self._home, asked, self._left_s(until_ms))
        finally:
            if asked.is_done and (asked.error is not None or asked.result() is not None):
                self._asked.pop(name, None)  # another thread may have waited for it too
        return found

    def _left_s(self, until_ms: float | None) -> float | None:
        if until_ms is None or isinstance(self._home, VirtualHome):
            return None
        return max(0.0, until_ms - self._home.clock.monotonic_ms()) / 1_000

    def _warn_if_shared(self) -> None:
        """Warns if another member on this machine uses the same offset file."""
        path = self._member.offset_path
        if path is None:
            return
        self._folder_use = FolderUse(path.parent)
        if self._folder_use.is_shared:
            self._say_shared(path)
        _BROADCASTING.add(self)
        if self._is_closed:  # closed meanwhile, by its listener for example
            self._end_folder_use()

    def _say_shared(self, path: Path) -> None:
        for other in list(_BROADCASTING):
            if other._member.offset_path == path and not (other._is_closed or other._client.is_closed):
                _log.warning(
                    "two members of group %s that broadcast are both client %s, and have their offsets in one"
                    " file, %s: one begins where the other has committed; give each client an instance_name,"
                    ' as in make_client(address, instance_name="till-2")',
                    self.group,
                    self.client_id,
                    path,
                )
                return
        _log.warning(
            "another process has a member of group %s that broadcasts and is client %s too, with its offsets"
            " in the same file, %s: each begins where the other has committed; give each an instance_name, as"
            ' in make_client(address, instance_name="till-2")',
            self.group,
            self.client_id,
            path,
        )

    def _watch_loop(self) -> None:
        """Registers a warning if its loop ends before it; for polled consumers a finalizer warns."""
        if self._is_awaited and self._goes_on_alone:
            member, client, kind = self._member, self._client, type(self).__name__
            member.loop_end = LoopEnd(
                lambda: f"<{kind} {member.group} of client {client.client_id}>", client, member.end_with_loop
            )

    def _warn_if_unused(self, error: BaseException | None) -> None:
        """Warns at the end of a block in which nothing was consumed, unless an error ends the block."""
        if self._beginning is None and not self._is_closed and error is None:
            _log.warning(
                "the %s of group %s was not started in its with block, and has consumed nothing: call %s",
                type(self).__name__,
                self.group,
                self._use,
            )

    def _keep(self) -> None:
        """Keeps its client open after it."""
        if self._end_if_dropped is not None:
            self._end_if_dropped.detach()

    def _refuse_in_loop(self) -> None:
        """Refuses a start in an event loop, where the consumer could not be closed."""
        if self._is_in_loop():
            name = type(self).__name__
            raise InvalidArgumentError(
                f"{'an' if name[0] in 'AEIOU' else 'a'} {name} is not run in an event loop: its close() would"
                " wait for itself",
                help=f"use Async{name}, or have a thread start and close it",
            )

    def _is_in_loop(self) -> bool:
        """Returns whether an event loop runs the caller, which would then block that loop."""
        return not self._is_awaited and self._home.loop is not None and is_loop_here()

    def _check_may_wait(self) -> None:
        check_may_wait(self._home, is_awaited=self._is_awaited, face=type(self).__name__)

    def _check_open(self) -> None:
        if self._is_closed:
            raise ConsumerError("a consumer that was closed consumes nothing")
        self._client.check_open()

    async def _commit_what_is_done(self) -> None:
        self._check_open()
        await self._commit()

    async def _commit(self) -> None:
        self._check_may_wait()
        self._client.check_live()
        await self._wait(self._home, await self._ask(self._member.commit_or_raise(), "commit"))

    async def _end(self, timeout_s: float | None) -> None:
        if timeout_s is not None:
            timeout_s = as_number("timeout_s", timeout_s)
        home, client = self._home, self._client
        if home.why_over is not None:
            self._end_without_home()
            return
        is_in_loop = self._is_in_loop()
        with self._close_lock:
            is_first = not self._is_closed
            is_unused = is_first and self._beginning is None and is_in_loop
            self._is_closed = self._is_closed or is_unused  # before another thread begins it
        if is_unused:
            self._end_unused()
            return
        if not (is_first or self._has_to_be_waited_for()):
            return
        if is_first:
            self._member.refuse_from_inside("close()", is_bounded=timeout_s is not None)
        self._check_may_wait()
        leaving = self._begin_to_leave()
        try:
            await wait_to_leave(self._wait, home, leaving, [self._member], timeout_s)
        finally:
            self._has_left = True
            if self._is_own and is_first:
                with suppress(TimeoutError):  # an error is being raised already
                    limit_s = None if leaving.is_done else 0
                    await client.end(limit_s, self._wait, is_awaited=self._is_awaited)

    def _end_unused(self) -> None:
        """Ends a consumer that was never started: no broker knows it, so there is nothing to wait for."""
        self._keep()
        self._member.end_listeners()
        if self._is_own:
            self._home.post(self._client.hang_up)

    def _end_without_home(self) -> None:
        self._keep()
        self._end_watch()
        if not self._is_closed:
            self._is_closed = True
            self._end_folder_use()
            self._member.end_listeners()
            if self._is_own:
                self._client.link.close()

    def _has_to_be_waited_for(self) -> bool:
        """Returns whether another call is closing it and must be waited for; a listener does not wait."""
        try:
            self._member.refuse_from_inside("close()", is_bounded=False)
        except ConsumerError:
            return False
        return not self._has_left

    def _end_watch(self) -> None:
        if self._member.loop_end is not None:
            self._member.loop_end.detach()

    def _begin_to_leave(self) -> Flow[None]:
        self._keep()
        self._end_watch()
        with self._close_lock:
            if self._leaving is None:
                self._is_closed = True  # set before a wait until idle can see the queues released
                self._leaving = start(self._home, self._leave(), "close of a consumer")
            return self._leaving

    async def _leave(self) -> None:
        if self._beginning is not None:
            await self._member.leave()
        self._end_folder_use()
        if self._is_own:
            await until(self._client.leave())

    def _end_folder_use(self) -> None:
        if self._folder_use is not None:
            self._folder_use.end()


def as_queue(name: str, queue: MessageQueue) -> MessageQueue:
    """Returns the queue if it is a valid one.

    Raises:
        InvalidArgumentError: It is not a queue, or a field of it has another type.
    """
    as_kind(name, MessageQueue, queue)
    as_text(f"{name}.topic", queue.topic)
    as_text(f"{name}.broker_name", queue.broker_name)
    as_int(f"{name}.queue_id", queue.queue_id, 0, MAX_I32)
    return queue


async def outcome_of(steps: Steps[R]) -> R | SeglogError:
    """Returns the result of a coroutine of the home, or its error as a result, which is not logged."""
    try:
        return await steps
    except SeglogError as error:
        return error


def offsets_of(client: Client, settings: ConsumerSettings) -> OffsetStore:
    """Returns the offset store of a consumer."""
    timestamp_ms = timestamp_ms_of(settings.consume_timestamp)
    if timestamp_ms is None:
        timestamp_ms = client.clock.now_ms() - DEFAULT_AGO_MS
    brokers = Brokers(client)
    first = FirstOffsets(brokers, settings.consume_from, timestamp_ms)
    if not settings.is_broadcasting:
        return BrokerOffsetStore(brokers, settings.group, first, client.clock, client.client_id)
    folder = (
        Path.home() / ".rocketmq_offsets" if settings.offset_folder is None else Path(settings.offset_folder)
    )
    path = local_offsets_path(folder, client.client_id, settings.group)
    return LocalOffsetStore(RealFiles(MOST_BYTES), path, first, client.clock)
