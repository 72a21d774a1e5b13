"""The laws of opening: it costs nothing that repair would save, keeps its proofs, and readers agree.

(a) A repair gives the same whether the store was opened for writing, and written to, before or not.
(b) What an opening writes over or removes, and that was no zeros, is in the attic byte for byte.
(c) A dry run serves what the repair then serves; a reader serves nothing otherwise than the repaired store.
(d) Damage to other files than those of the log changes no record of it, by opening or by repair.

What is served are the messages of all queues, pulls of some tags, and queries by some keys.
"""

from __future__ import annotations

import random
import shutil
from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

import numpy as np

from seglog.doctor.draft.draft_files import DraftFiles
from seglog.doctor.repair.repair import plan_repair
from seglog.errors import SeglogError
from seglog.storage.files.files import RealFiles
from seglog.storage.format.names import BATCH_CONSUME_QUEUE, COMMIT_LOG, CONSUME_QUEUE, INDEX
from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT_BYTES
from seglog.storage.format.queue.consume_queue import CQ_UNIT, CQ_UNIT_BYTES
from seglog.storage.format.record.properties import decode_properties
from seglog.storage.overlay.kept_units import is_message
from seglog.storage.small_files.attic import ATTIC, iter_kept
from seglog.storage.store import MessageStore
from tests.support.damage.campaign import COMPACTED, Key, Stored, Subject, read_records
from tests.support.machine.shared import copy_tree
from tests.support.material.stores import new_clock, read_all

_OTHERS: Final = 6
"""Messages of which tag and keys are asked for: of those that were hit, and of all."""
_PUT: Final = "PutBehindAnOpening"
_K = TypeVar("_K", bound=Hashable)
_SIZES: Final = {CONSUME_QUEUE: CQ_UNIT_BYTES, BATCH_CONSUME_QUEUE: BATCH_UNIT_BYTES}


@dataclass(frozen=True)
class Questions:
    """What a store is asked beside its queues: pulls of one tag, and queries by key.

    Attributes:
        tags: Topic and tag.
        keys: Topic and key.
    """

    tags: tuple[tuple[str, str], ...] = ()
    keys: tuple[tuple[str, str], ...] = ()

    @classmethod
    def about(cls, subject: Subject, hit: Collection[Key], chance: random.Random) -> Questions:
        """Returns questions whose answers a damage may change, and a few others.

        Args:
            subject: The undamaged store.
            hit: The messages that the damage hit.
            chance: Chooses.
        """
        others = chance.sample(sorted(subject.records), min(_OTHERS, len(subject.records)))
        keys = [*sorted(hit)[:_OTHERS], *others]
        plain = [key for key in keys if key[0] != COMPACTED]
        told = [(key[0], decode_properties(subject.records[key].properties)) for key in plain]
        tags = {(topic, properties["TAGS"]) for topic, properties in told if properties.get("TAGS")}
        names = (
            (topic, properties.get(name, "")) for topic, properties in told for name in ("KEYS", "UNIQ_KEY")
        )
        return cls(
            tuple(sorted(tags)),
            tuple(sorted({(topic, key) for topic, text in names for key in text.split()})),
        )


NOTHING: Final = Questions()

Answers = dict[tuple[str, ...], tuple[int, ...]]
"""Where the messages are that a question is answered with."""


@dataclass(frozen=True)
class Look:
    """What a store serves.

    Attributes:
        records: By queue.
        answers: By question.
    """

    records: dict[Key, Stored]
    answers: Answers

    def without(self, topic: str) -> Look:
        """Returns the same without a topic that was not asked about."""
        return replace(self, records={key: one for key, one in self.records.items() if key[0] != topic})


def look_at(store: MessageStore, asked: Questions) -> Look:
    """Returns what an open store serves."""
    answers: Answers = {}
    for topic, tag in asked.tags:
        for queue in store.queues():
            if queue.topic == topic:
                found = read_all(store, topic, queue.queue_id, tag)
                answers["tag", topic, tag, str(queue.queue_id)] = tuple(one.phy_offset for one in found)
    for topic, key in asked.keys:
        answers["key", topic, key] = tuple(one.phy_offset for one in store.query(topic, key))
    return Look(read_records(store), {question: answer for question, answer in answers.items() if answer})


def served_by(root: Path, files: DraftFiles | None = None, asked: Questions = NOTHING) -> Look | str:
    """Returns what a store serves to a reader; what was said if it does not open."""
    try:
        with MessageStore.open(root, read_only=True, clock=new_clock(), files=files or RealFiles()) as store:
            return look_at(store, asked)
    except SeglogError as error:
        return type(error).__name__


def opened_then_repaired(
    subject: Subject, damaged: Path, copy: Path, asked: Questions
) -> tuple[Look | str, list[str]]:
    """Opens a copy of a damaged store for writing, puts a message, closes it and plans its repair.

    Args:
        subject: The store.
        damaged: A damaged copy of it, which is left alone.
        copy: Where another copy is made; it must not exist, and does not afterwards.
        asked: What the draft is asked.

    Returns:
        What the draft of the repair serves, the message left out, and what the opening wrote over: did not
        keep, or had no reason to change.
    """
    copy_tree(damaged, copy)
    try:
        with suppress(SeglogError), MessageStore.open(copy, clock=new_clock(), create=False) as store:
            store.put(_PUT, b"a message", tags="TagOfIt", keys="key-of-it")
        lost = [*not_kept(damaged, copy), *log_changed(subject, damaged, copy)]
        look = served_by(copy, plan_repair(RealFiles(), copy, new_clock(), subject.sizes).draft, asked)
        return look if isinstance(look, str) else look.without(_PUT), lost
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
                missing.append(name)  # those that exist were written on
            continue
        gone = _gone(name, was, now)
        if any(kept[name].get(at) != was[at] for at in gone):
            missing.append(f"{name} +{gone[0]}")
    return missing


def log_changed(subject: Subject, damaged: Path, after: Path) -> list[str]:
    """Returns the log files of which a record changed although the damage did not touch the log.

    Args:
        subject: The undamaged store.
        damaged: As it was damaged.
        after: What became of that.
    """
    logs = [
        {path.name: path.read_bytes() for path in sorted((root / COMMIT_LOG).iterdir()) if path.is_file()}
        for root in (subject.root, damaged, after)
        if (root / COMMIT_LOG).is_dir()
    ]
    if len(logs) < len((subject, damaged, after)) or logs[0] != logs[1]:
        return []
    ends = {one.phy_offset + one.size_bytes for one in subject.records.values() if one.phy_offset is not None}
    whole, end = logs[0], max(ends)
    return [
        f"{COMMIT_LOG}/{name}"
        for name, content in whole.items()
        if logs[2].get(name, b"")[: max(0, end - int(name))] != content[: max(0, end - int(name))]
    ]


def _gone(name: str, was: bytes, now: bytes) -> list[int]:
    """Returns the places of bytes that no longer exist and were no zeros; of queues, whole units."""
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


def differing(one: Look | str, other: Look | str) -> list[str]:
    """Returns in a few words what two looks at a store find differently."""
    if isinstance(one, str) or isinstance(other, str):
        return [] if one == other else [f"{_named(one)}, not {_named(other)}"]
    return [*_unlike(one.records, other.records), *_unlike(one.answers, other.answers)]


def _unlike(one: Mapping[_K, object], other: Mapping[_K, object]) -> list[str]:
    keys = [key for key in one.keys() | other.keys() if one.get(key) != other.get(key)]
    return [f"{len(keys)}: {sorted(keys, key=str)[:3]}"] if keys else []


def _named(look: Look | str) -> str:
    return look if isinstance(look, str) else f"{len(look.records)} messages"


def served_otherwise(reader: Look | str, repaired: Look, by_index: Collection[int]) -> list[str]:
    """Returns what a reader serves that the repaired store serves not, or otherwise.

    Args:
        reader: What it serves.
        repaired: What the store serves after a repair.
        by_index: Where records are that only the key index says otherwise: opening for reading does not hold
            the index against the log, a check does.
    """
    if isinstance(reader, str):
        return []
    records, answers = repaired.records, repaired.answers
    wrong = sorted(
        key
        for key, one in reader.records.items()
        if records.get(key) != one and key[0] != COMPACTED and key[2] not in by_index
    )
    further = sorted(
        asked for asked, one in reader.answers.items() if {*one} - {*answers.get(asked, ()), *by_index}
    )
    return [f"{len(keys)}: {keys[:3]}" for keys in (wrong, further) if keys]
