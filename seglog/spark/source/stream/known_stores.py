"""Finds the store of each position in a checkpoint.

A checkpoint has a unique key for each store. The key of a store may have changed: an earlier version used
``brokerName`` or the path as the user spelled it, or its folder was moved. A position is given to a store if
the match is certain: both paths lead to the same place, only one store has the ``brokerName``, or the last
record that was read exists there with all its bytes. If it is not certain, and a missing store could be the
same as a new one, the stream ends with an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seglog.errors import InvalidArgumentError
from seglog.spark.source.stream.store_view import FollowedStore
from seglog.spark.source.stream.stream_offset import LastRecord, StoreOffset, StreamOffset
from seglog.spark.source.wanted.identity import real_place, store_key

HasRecord = Callable[[FollowedStore, LastRecord], bool]


@dataclass(frozen=True, slots=True)
class KnownPlaces:
    """The positions in a checkpoint.

    Attributes:
        of_stores: Positions in stores that the stream reads, by their present keys; without new stores.
        of_absent: Positions in stores that it does not read now, by the keys of the checkpoint.
    """

    of_stores: StreamOffset
    of_absent: StreamOffset


def find_places(stores: Sequence[FollowedStore], offset: StreamOffset, has_record: HasRecord) -> KnownPlaces:
    """Returns the store of each position in an offset.

    Args:
        stores: The stores that are read.
        offset: The position of the stream, maybe written by an earlier version.
        has_record: Returns whether a record is at its place in a store.

    Raises:
        InvalidArgumentError: The match is not certain.
    """
    finder = _Finder(stores, offset, has_record)
    finder.by_path()
    finder.by_broker_name()
    finder.by_last_record()
    finder.check_new()
    return KnownPlaces(finder.found, finder.left)


class _Finder:
    """Matches positions and stores, the most certain matches first."""

    def __init__(self, stores: Sequence[FollowedStore], offset: StreamOffset, has_record: HasRecord) -> None:
        self._stores = stores
        self._has_record = has_record
        self.found: StreamOffset = {}
        self.left: StreamOffset = dict(offset)

    def by_path(self) -> None:
        """Matches by path: the key, as it was spelled, leads to the store."""
        for store in self._stores:
            if store.key in self.left:
                self._give(store, store.key)
        places = {name: real_place(name) for name in self.left}
        for store in self._stores:
            here = real_place(store.path)
            same = [name for name in self.left if name == store.path or places[name] == here]
            if self._is_new(store) and same:
                self._give(store, store.path if store.path in same else same[0])
            for name in same:  # another spelling of a store that was read twice
                self.left.pop(name, None)

    def by_broker_name(self) -> None:
        """Matches by a ``brokerName`` that only one store has.

        Raises:
            InvalidArgumentError: An earlier version has one position for several stores.
        """
        for store in self._stores:
            name = store.broker_name
            if name is None:
                continue
            namesakes = [one for one in self._stores if one.broker_name == name]
            if len(namesakes) > 1 and _is_of_earlier_version(self.left, name):
                paths = ", ".join(one.path for one in namesakes)
                raise InvalidArgumentError(
                    f"the checkpoint of this stream has one place for all stores with the brokerName {name},"
                    f" and does not say how far it came in each of {paths}",
                    help="an earlier version wrote it so, and left messages out: begin with a new"
                    " checkpointLocation; if only one of these stores was read so far, run the stream once"
                    " with that one alone, then with all",
                )
            known = [key for key, at in self.left.items() if name in (key, at.get("brokerName"))]
            new = [one for one in namesakes if self._is_new(one)]
            if len(known) == len(new) == 1:
                self._give(new[0], known[0])

    def by_last_record(self) -> None:
        """Matches by a last record that is in one store only."""
        new = [store for store in self._stores if self._is_new(store)]
        fits = {
            name: [store for store in new if "lastRecord" in at and self._has_record(store, at["lastRecord"])]
            for name, at in (self.left.items() if new else ())
        }
        for name, having in fits.items():
            if len(having) == 1 and [having[0] in others for others in fits.values()].count(True) == 1:
                self._give(having[0], name)

    def check_new(self) -> None:
        """Refuses to read a store from its start if it may be one that is missing.

        Raises:
            InvalidArgumentError: There is such a store.
        """
        new = [store.path for store in self._stores if self._is_new(store)]
        gone = [name for name, at in self.left.items() if not at.get("isAbsent", False)]
        if new and gone:
            raise InvalidArgumentError(
                f"the checkpoint of this stream knows nothing of {', '.join(new)}, but of {', '.join(gone)},"
                " which is not among the paths; it cannot be seen whether that is the same store",
                help="if the store moved, leave a link to it at its old path; if it is another store, run the"
                " stream once without it, or begin with a new checkpointLocation",
            )

    def _is_new(self, store: FollowedStore) -> bool:
        return store.key not in self.found

    def _give(self, store: FollowedStore, name: str) -> None:
        at: StoreOffset = self.left.pop(name).copy()
        at.pop("isAbsent", None)
        self.found[store.key] = at


def _is_of_earlier_version(offset: StreamOffset, name: str) -> bool:
    """Returns whether the key of a position is a ``brokerName``."""
    return name in offset and store_key(name) != name
