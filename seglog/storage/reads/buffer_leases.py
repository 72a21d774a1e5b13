"""The arrays that share memory with an open store, counted until they are released.

An array of :meth:`Loan.lend` counts as long as it or any view made of it lives: slices, fields, memoryviews
and Arrow buffers all keep it alive. Their memory stays valid in any case, because a map lives as long as its
last view; but the next owner of a closed file may cut or rewrite it, and then a view of it changes, or ends
the process. So closing a store with live views is an error.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter
from itertools import count

import numpy as np
import numpy.typing as npt

from seglog.errors import ClosedError, StoreInUseError, ViewHolder

Who = tuple[str, int, str, int]
"""Topic, queue, kind, and the number of the loan."""


class _Lent(weakref.ref[npt.NDArray[np.uint8]]):
    """A reference to an array that is lent; it hashes by identity, since arrays do not hash."""

    __slots__ = ("who",)
    __hash__ = object.__hash__
    __eq__ = object.__eq__

    who: Who


class Loan:
    """Memory that counts as one view of the store, of any number of pieces."""

    def __init__(self, leases: Leases, who: Who) -> None:
        self._leases = leases
        self._who = who

    def lend(self, memory: memoryview) -> npt.NDArray[np.uint8]:
        """Returns a read-only array ``(n,) u8`` over a piece of memory, which is counted from now on.

        Raises:
            ClosedError: The store was closed.
        """
        return self._leases.lend(memory, self._who)


class Leases:
    """The views that one store has lent.

    Args:
        name: The store, as errors name it.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._closed = False
        self._numbers = count()
        self._lent: set[_Lent] = set()

    def loan(self, topic: str, queue_id: int, kind: str) -> Loan:
        """Begins a view of a queue; ``kind`` is the kind of its data, such as ``units``."""
        return Loan(self, (topic, queue_id, kind, next(self._numbers)))

    def lend(self, memory: memoryview, who: Who) -> npt.NDArray[np.uint8]:
        """See :meth:`Loan.lend`."""
        array: npt.NDArray[np.uint8] = np.frombuffer(memory, np.uint8)
        array.flags.writeable = False
        with self._lock:
            self.check_open()
            # The callback runs in the thread that drops the last reference, perhaps within this class. So it
            # must take no lock: it is one call in C, which neither a signal nor another thread can interrupt.
            lent = _Lent(array, self._lent.discard)
            lent.who = who
            self._lent.add(lent)
        return array

    def check_open(self) -> None:
        """Does nothing while the store is open.

        Raises:
            ClosedError: It was closed.
        """
        if self._closed:
            raise ClosedError(f"the store {self._name} was closed")

    def holders(self) -> tuple[ViewHolder, ...]:
        """Returns the queues and kinds of the views that are alive, sorted."""
        # The references are not called: a call would keep the array alive for a moment, in which another
        # thread could release it and still find it counted. A released array has left the set already.
        loans = {lent.who for lent in self._lent.copy()}
        views = Counter((topic, queue_id, kind) for topic, queue_id, kind, _loan in loans)
        return tuple(ViewHolder(*key, number) for key, number in sorted(views.items()))

    def close(self, *, force: bool) -> None:
        """Refuses to lend from now on.

        Args:
            force: Whether to do so even if views are alive.

        Raises:
            StoreInUseError: Views are alive; nothing was changed.
        """
        with self._lock:
            held = self.holders()
            if held and not force:
                raise StoreInUseError(self._name, held)
            self._closed = True
