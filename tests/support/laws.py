"""The three laws of opening: it costs nothing that repair would save, keeps its proofs, and readers agree.

(a) A repair gives the same whether the store was opened for writing before or not.
(b) What an opening writes over or removes, and that was no zeros, is in the attic byte for byte.
(c) A dry run serves what the repair then serves; a reader serves nothing otherwise than the repaired store.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np

from seglog.doctor.draft_files import DraftFiles
from seglog.doctor.repair import plan_repair
from seglog.errors import SeglogError
from seglog.storage.attic import ATTIC, iter_kept
from seglog.storage.files import RealFiles
from seglog.storage.format.batch_consume_queue import BATCH_UNIT_BYTES
from seglog.storage.format.consume_queue import CQ_UNIT, CQ_UNIT_BYTES
from seglog.storage.format.names import BATCH_CONSUME_QUEUE, COMMIT_LOG, CONSUME_QUEUE, INDEX
from seglog.storage.queue_overlay import is_message
from seglog.storage.store import MessageStore
from tests.support.campaign import COMPACTED, Key, Stored, Subject, read_records
from tests.support.stores import new_clock

_SIZES: Final = {CONSUME_QUEUE: CQ_UNIT_BYTES, BATCH_CONSUME_QUEUE: BATCH_UNIT_BYTES}


def served_by(root: Path, files: DraftFiles | None = None) -> dict[Key, Stored] | str:
    """Returns what a store serves to a reader; what was said if it does not open."""
    try:
        with MessageStore.open(root, read_only=True, clock=new_clock(), files=files or RealFiles()) as store:
            return read_records(store)
    except SeglogError as error:
        return type(error).__name__


def opened_then_repaired(
    subject: Subject, damaged: Path, copy: Path
) -> tuple[dict[Key, Stored] | str, list[str]]:
    """Opens a copy of a damaged store for writing, closes it and plans its repair.

    Args:
        subject: The store.
        damaged: A damaged copy of it, which is left alone.
        copy: Where another copy is made; nothing may be there, and nothing is afterwards.

    Returns:
        What the draft of the repair serves, and what the opening wrote over and did not keep.
    """
    shutil.copytree(damaged, copy)
    try:
        with suppress(SeglogError):  # what is not opened is not changed
            MessageStore.open(copy, clock=new_clock(), create=False).close()
        lost = not_kept(damaged, copy)
        return served_by(copy, plan_repair(RealFiles(), copy, new_clock(), subject.sizes).draft), lost
    finally:
        shutil.rmtree(copy)


def not_kept(before: Path, after: Path) -> list[str]:
    """Returns what of a store's proofs is neither where it was nor in the attic, in words."""
    kept: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for one in iter_kept(RealFiles(), after):
        if one.name is not None:
            kept[one.name].update(enumerate(one.data, one.position_bytes))
    whole = {path.read_bytes() for path in (after / ATTIC).glob("*-*")} if (after / ATTIC).exists() else set()
    missing = []
    for path in sorted(path for part in (COMMIT_LOG, *_SIZES, INDEX) for path in (before / part).rglob("*")):
        name = path.relative_to(before).as_posix()
        if not path.is_file() or not path.name.isdigit():
            continue
        was = path.read_bytes()
        now = (after / name).read_bytes() if (after / name).is_file() else b""
        if was == now or was in whole:
            continue
        if name.startswith(INDEX):
            if not now:
                missing.append(name)  # those that are there were written on
            continue
        gone = _gone(name, was, now)
        if any(kept[name].get(at) != was[at] for at in gone):
            missing.append(f"{name} +{gone[0]}")
    return missing


def _gone(name: str, was: bytes, now: bytes) -> list[int]:
    """Returns the places of bytes that are not there any more and were no zeros; of queues, whole units."""
    before = np.frombuffer(was, np.uint8)
    after = np.frombuffer(now[: len(was)].ljust(len(was), b"\0"), np.uint8)
    differs = before != after
    unit_bytes = _SIZES.get(name.partition("/")[0])
    if unit_bytes is None:
        places: list[int] = np.flatnonzero(differs & (before != 0)).tolist()
        return places
    count = len(was) // unit_bytes
    units = before[: count * unit_bytes].reshape(count, unit_bytes)
    changed = differs[: count * unit_bytes].reshape(count, unit_bytes).any(axis=1) & units.any(axis=1)
    if unit_bytes == CQ_UNIT_BYTES:
        changed &= is_message(np.frombuffer(was, CQ_UNIT.dtype, count))
    wanted = [
        at for unit in np.flatnonzero(changed) for at in range(unit * unit_bytes, (unit + 1) * unit_bytes)
    ]
    return [at for at in wanted if was[at]]


def differing(one: dict[Key, Stored] | str, other: dict[Key, Stored] | str) -> list[str]:
    """Returns in a few words what two looks at a store serve differently."""
    if isinstance(one, str) or isinstance(other, str):
        return [] if one == other else [f"{one if isinstance(one, str) else len(one)}, not {other!s:.40}"]
    keys = sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))
    return [f"{len(keys)}: {keys[:3]}"] if keys else []


def served_otherwise(reader: dict[Key, Stored] | str, repaired: dict[Key, Stored]) -> list[str]:
    """Returns what a reader serves that the repaired store serves not, or otherwise."""
    if isinstance(reader, str):
        return []
    wrong = sorted(
        key for key, record in reader.items() if repaired.get(key) != record and key[0] != COMPACTED
    )
    return [f"{len(wrong)}: {wrong[:3]}"] if wrong else []
