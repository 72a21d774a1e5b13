"""Finds out who can take part."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perf.contestants import chronicle, rocketmq
from perf.contestants.contestant import Contestant
from perf.contestants.limit import Limit
from perf.contestants.python_peer import LMDB, SQLITE
from perf.contestants.seglog import native, other, python


@dataclass(slots=True)
class LineUp:
    """Who takes part.

    Attributes:
        contestants: Ours first.
        left_out: Why somebody is missing, by what the report would have called it.
        java: Version of the Java that takes part, empty if none does.
    """

    contestants: list[Contestant] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    java: str = ""

    def close(self) -> None:
        """Ends what contestants keep."""
        for contestant in self.contestants:
            contestant.close()


def _add(found: LineUp, name: str, why_missing: str | None, make: Callable[[], Contestant]) -> None:
    if why_missing is None:
        found.contestants.append(make())
    else:
        found.left_out[name] = why_missing


def line_up(wanted: Sequence[str], against: Path | None, *, is_smoke: bool = False) -> LineUp:
    """Returns who can take part.

    Args:
        wanted: Keys of those who shall, none for all.
        against: Another checkout of ours that takes part too.
        is_smoke: Leave out who has to be built first and was not asked for by name.
    """
    found = LineUp()

    def is_wanted(key: str) -> bool:
        return not wanted or key in wanted

    if is_wanted("native"):
        if importlib.util.find_spec("seglog.storage.kernels._native") is None:
            found.left_out["seglog native"] = "its kernels are not compiled; see make kernels"
        else:
            found.contestants.append(native())
    if is_wanted("python"):
        found.contestants.append(python())
    if against is not None:
        found.contestants.append(other(against))
    if is_wanted("rocketmq"):
        _add(found, "RocketMQ", rocketmq.why_missing(), rocketmq.RocketMq)
    if is_wanted("chronicle"):
        _add(found, "Chronicle Queue", chronicle.why_missing(), chronicle.Chronicle)
    if {"rocketmq", "chronicle"} & {each.key for each in found.contestants}:
        found.java = rocketmq.java_version()
    found.contestants += [peer for peer in (LMDB, SQLITE, Limit()) if is_wanted(peer.key)]
    return found
