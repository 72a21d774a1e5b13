"""Answers requests whose calling thread must not wait.

A request's handler runs at once, in the calling thread. The handler makes its append then, so that sends of a
connection keep their order; the send is acknowledged when the log is on the disk, and many sends share one
sync. A request that first has to create a file or to save a table changes nothing, and is passed to another
thread (``aside.py``); later sends of the same client follow it there. Topics, groups and values of all
requests that wait there are saved together.

Groups that clients name for the first time are saved with the other tables: if the save is lost in a crash,
the clients name them again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import Protocol

from seglog.broker.answers.aside import Aside, AsideRequest
from seglog.broker.answers.held_answer import HeldAnswer
from seglog.broker.answers.send_deadlines import SendDeadlines
from seglog.broker.handlers.handler import Answer
from seglog.broker.pulls.pull import HeldPull
from seglog.broker.state.refusals import Refusals
from seglog.broker.state.state import AnyAppends, TrySend
from seglog.errors import SeglogError, StoreFailedError
from seglog.remoting.codes import SENDS, ResponseCode
from seglog.remoting.command import Request, Response
from seglog.remoting.later import Deferred
from seglog.remoting.peer import Peer
from seglog.storage.store import MessageStore
from seglog.storage.threads import WouldWaitError, without_waiting

Soon = Callable[[Callable[[], None]], object]
"""Schedules a function to be called after the other work of this turn."""


class SavedTogether(Protocol):
    """A table whose changes can share a save."""

    @property
    def gathered_count(self) -> int:
        """How many changes ever shared one."""

    def one_save(self) -> AbstractContextManager[None]:
        """Collects the changes of the calling thread, and saves them together at its end."""


class Answering:
    """Answers requests without waiting. Any thread may call it.

    Args:
        store: Stores the messages.
        tables: Each saved once for all requests that wait for it together.
        deadlines: Ends the wait of sends whose disk is slow.
        handle: Runs the handler of a request, with the given append calls.
        hold: Parks a pull.
        refusals: Makes answers of errors.
        try_send: Answers a send that only has to be stored.
    """

    def __init__(
        self,
        store: MessageStore,
        tables: Sequence[SavedTogether],
        deadlines: SendDeadlines,
        handle: Callable[[Request, Peer, AnyAppends], Answer],
        hold: Callable[[HeldPull], HeldAnswer],
        refusals: Refusals,
        try_send: TrySend,
    ) -> None:
        self._store = store
        self._tables = tables
        self._deadlines = deadlines
        self._try_send = try_send
        self._handle = handle
        self._hold = hold
        self._refusals = refusals
        self._aside = Aside(self._do)

    def answer(self, request: Request, peer: Peer, soon: Soon) -> Response | Deferred[Response]:
        """Returns the answer, or a deferred one.

        Args:
            request: The request.
            peer: The client.
            soon: Schedules the sync that sends wait for; called for each send, and one sync serves all sends
                before it.
        """
        if request.code in SENDS and self._aside.has(peer):
            return self._aside.put(request, peer)
        quick = self._try_send(request, peer)
        if quick is not None:
            return quick
        appends = self._store.unsynced()
        try:
            with without_waiting():
                made = self._handle(request, peer, appends)
        except WouldWaitError:
            return self._aside.put(request, peer)
        if isinstance(made, HeldPull):
            return self._hold(made)
        if not appends.until:
            return made
        answer: Deferred[Response] = Deferred()
        self._settle(answer, made, appends.until)
        if answer.is_done:
            return answer.result()
        soon(self._store.sync_soon)
        return answer

    def close(self) -> None:
        """Ends the thread after its waiting requests; sends are answered when the store is on the disk."""
        self._aside.close()

    def _do(self, some: Sequence[AsideRequest]) -> None:
        """Answers requests in the thread that may wait."""
        made: list[tuple[AsideRequest, Answer, int, bool]] = []
        failed: SeglogError | None = None
        try:
            with ExitStack() as saves:
                for table in self._tables:
                    saves.enter_context(table.one_save())
                for each in some:
                    appends, before = self._store.unsynced(), self._gathered()
                    answer = self._handle(each.request, each.peer, appends)
                    made.append((each, answer, appends.until, self._gathered() != before))
        except SeglogError as error:
            failed = error
        for each, answer, until, is_saved in made:
            if failed is not None and is_saved:
                each.answer.resolve(self._refusal(failed, answer))
            else:
                self._settle(each.answer, answer, until)
        if made:
            self._store.sync_soon()

    def _gathered(self) -> int:
        return sum(table.gathered_count for table in self._tables)

    def _settle(self, answer: Deferred[Response], made: Answer, until: int) -> None:
        """Answers a client: now, when the log is on the disk, or when a message or an answer arrives."""
        if not isinstance(made, Response):
            later = self._hold(made) if isinstance(made, HeldPull) else made
            later.then(lambda of: answer.resolve_by(of.result))
            answer.then(lambda _: later.cancel())  # if the client no longer waits
            return
        if not until or made.code is not ResponseCode.SUCCESS:
            answer.resolve(made)
            return

        def told(error: StoreFailedError | None) -> None:
            answer.resolve(made if error is None else self._refusal(error, made))

        try:
            if self._store.when_durable(until, told):
                self._deadlines.add(answer, made)
            else:
                answer.resolve(made)
        except SeglogError as error:
            answer.resolve(self._refusal(error, made))

    def _refusal(self, error: SeglogError, of: Answer) -> Response:
        refused = self._refusals.of_error(error)
        return replace(refused, ext=of.ext) if isinstance(of, Response) and of.ext is not None else refused
