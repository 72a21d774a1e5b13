"""Finds the contestants that can take part."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from perf.contestants import rocketmq, rust_peer
from perf.contestants.contestant import Contestant
from perf.contestants.java_peer import CHRONICLE, KAFKA, JavaPeer
from perf.contestants.limit import Limit
from perf.contestants.python_peer import HONKER, LMDB, SQLITE, why_no_honker
from perf.contestants.seglog import native, other, python
from perf.figures.results import KEYS

_BUILT: Final = frozenset({KAFKA.key, *(peer.key for peer in rust_peer.RUST_PEERS)})
"""They are built the first time, which a smoke test does not wait for."""


@dataclass(slots=True)
class LineUp:
    """Who takes part.

    Attributes:
        contestants: Ours first.
        left_out: Why a contestant is missing, by its name in the report.
        java: Version of the Java that takes part, empty if none does.
    """

    contestants: list[Contestant] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    java: str = ""

    def close(self) -> None:
        """Ends processes that contestants keep."""
        for contestant in self.contestants:
            contestant.close()


def _add(found: LineUp, name: str, why_missing: str | None, make: Callable[[], Contestant]) -> None:
    if why_missing is None:
        found.contestants.append(make())
    else:
        found.left_out[name] = why_missing


def keys_of(wanted: Sequence[str], *, is_smoke: bool) -> frozenset[str]:
    """Returns the keys of the contestants that take part if they can.

    Args:
        wanted: Keys of those who shall, none for all.
        is_smoke: Leave out who has to be built first and was not asked for by name.
    """
    return frozenset(wanted or set(KEYS) - (_BUILT if is_smoke else set()))


def line_up(wanted: Sequence[str], against: Path | None, *, is_smoke: bool = False) -> LineUp:
    """Returns the contestants that can take part.

    Args:
        wanted: Keys of those who shall, none for all.
        against: Another checkout of ours that takes part too.
        is_smoke: Leave out who has to be built first and was not asked for by name.
    """
    found = LineUp()

    keys = keys_of(wanted, is_smoke=is_smoke)

    if "native" in keys:
        if importlib.util.find_spec("seglog.storage.kernels._native") is None:
            found.left_out["seglog native"] = "its kernels are not compiled; see make kernels"
        else:
            found.contestants.append(native())
    if "python" in keys:
        found.contestants.append(python())
    if against is not None:
        found.contestants.append(other(against))
    if "rocketmq" in keys:
        _add(found, "RocketMQ", rocketmq.why_missing(), rocketmq.RocketMq)
    for log in (KAFKA, CHRONICLE):
        if log.key in keys:
            _add(found, log.title, log.why_missing(), partial(JavaPeer, log))
    if {"rocketmq", KAFKA.key, CHRONICLE.key} & {each.key for each in found.contestants}:
        found.java = rocketmq.java_version()
    in_rust = [peer for peer in rust_peer.RUST_PEERS if peer.key in keys]
    why_missing = rust_peer.why_missing() if in_rust else None
    for peer in in_rust:
        _add(found, peer.title, why_missing, partial(replace, peer))
    found.contestants += [peer for peer in (LMDB, SQLITE) if peer.key in keys]
    if HONKER.key in keys:
        _add(found, HONKER.title, why_no_honker(), lambda: HONKER)
    found.contestants += [peer for peer in (Limit(),) if peer.key in keys]
    return found
