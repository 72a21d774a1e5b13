"""What compaction needs to know of the records of a split, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.spark.compact.keys import hash_keys
from seglog.spark.compact.placeholders import PLACEHOLDER_FLAG, placeholder_sizes
from seglog.spark.compact.policy import QueuePolicy
from seglog.storage.format.layout import U32, U32_ITEMS
from seglog.storage.format.record import FILLER_TOPIC, INNER_BATCH
from seglog.storage.format.record import properties as props
from seglog.storage.kernels.gather import Bytes, Ints, Mask, overlapping, properties_ranges, read_heads
from seglog.storage.kernels.walk import Rows, are_dispatched

FACT: Final = np.dtype(
    [
        ("phy_offset", "i8"),
        ("queue_offset", "i8"),
        ("tags_code", "i8"),
        ("store_timestamp_ms", "i8"),
        ("key_high", "i8"),
        ("key_low", "i8"),
        ("size_bytes", "i4"),
        ("queue", "i4"),
        ("sys_flag", "i4"),
        ("placeholder_bytes", "i4"),
        ("has_key", "?"),
        ("is_empty", "?"),
        ("is_placeholder", "?"),
        ("is_filler", "?"),
        ("is_erased", "?"),
        ("has_crc", "?"),
        ("takes_slot", "?"),
        ("can_go", "?"),
    ]
)
"""One record; ``can_go`` says whether its kind may be dropped at all."""

Facts = npt.NDArray[np.void]
Key = tuple[str, int]
_HEAD_FIELDS: Final = ("magic", "sys_flag", "body_bytes", "flag")
_COPIED: Final = ("phy_offset", "queue_offset", "tags_code", "store_timestamp_ms", "size_bytes", "sys_flag")
_CRC_WORD: Final = U32.unpack_from(props.CRC_NAME)[0]


@dataclass(slots=True)
class FactWatch:
    """Collects facts while a split is walked; a :class:`~seglog.spark.compact.task.Looks`.

    Attributes:
        policies: What is asked, by queue.
        salt: Of the key hashes.
        parts: What was seen so far.
        names: Topic and number by ``queue`` of the facts.
    """

    policies: Mapping[Key, QueuePolicy]
    salt: int
    parts: list[Facts] = field(default_factory=list)
    names: Sequence[Key] = ()

    def note(
        self,
        window: memoryview,
        phy_offset: int,
        rows: Rows,
        saying_more: Sequence[int],
        queues: Sequence[Key],
    ) -> None:
        """Takes the next records."""
        self.names = queues
        self.parts.append(facts_of(window, phy_offset, rows, saying_more, queues, self.policies, self.salt))

    def facts(self) -> Facts:
        """Returns all facts in log order."""
        return np.concatenate(self.parts) if self.parts else np.zeros(0, FACT)


def facts_of(
    window: memoryview,
    phy_offset: int,
    rows: Rows,
    saying_more: Sequence[int],
    queues: Sequence[Key],
    policies: Mapping[Key, QueuePolicy],
    salt: int,
) -> Facts:
    """Returns the facts of records that a window of the log holds.

    Args:
        window: The bytes.
        phy_offset: Where they begin.
        rows: ``(n,) ROW``.
        saying_more: Where in the window records are that belong to further queues, or are batches.
        queues: Topic and number by the rows' ``queue``.
        policies: What is asked, by queue.
        salt: Of the key hashes.
    """
    buffer = np.frombuffer(window, np.uint8)
    at = rows["phy_offset"].astype(np.int64) - phy_offset
    sizes = rows["size_bytes"].astype(np.int64)
    _valid, heads = read_heads(buffer, at, rows["phy_offset"].astype(np.int64), sizes, _HEAD_FIELDS)
    facts = np.zeros(len(rows), FACT)
    for name in _COPIED:
        facts[name] = rows[name]
    facts["queue"] = rows["queue"]
    facts["takes_slot"] = are_dispatched(rows)
    facts["is_empty"] = heads["body_bytes"] == 0
    facts["is_placeholder"] = (heads["flag"] == PLACEHOLDER_FLAG) & facts["takes_slot"] & facts["is_empty"]
    wanted = np.array([key in policies for key in queues], np.bool_)[rows["queue"]]
    fillers = np.array([topic == FILLER_TOPIC for topic, _queue in queues], np.bool_)[rows["queue"]]
    facts["is_filler"] = fillers & ~facts["takes_slot"]
    _ok, starts, lengths = properties_ranges(buffer, at, sizes, heads)
    facts["has_crc"] = _has_crc(buffer, starts, lengths)
    says_more = np.isin(at, saying_more)
    facts["can_go"] = wanted & facts["takes_slot"] & (rows["sys_flag"] & INNER_BATCH == 0) & ~says_more
    _add_keys(facts, buffer, starts, lengths, queues, policies, salt)
    _add_erased(facts, window, at, starts, lengths, queues, policies)
    for number in np.unique(rows["queue"][facts["can_go"]]).tolist():
        mine = np.flatnonzero(facts["can_go"] & (rows["queue"] == number))
        facts["placeholder_bytes"][mine] = placeholder_sizes(
            queues[number][0], rows["sys_flag"][mine].astype(np.int64), sizes[mine], facts["has_crc"][mine]
        )
    return facts


def _has_crc(buffer: Bytes, starts: Ints, lengths: Ints) -> Mask:
    fits = lengths >= props.CRC_PROPERTY_BYTES
    tail = np.where(fits, starts + lengths - props.CRC_PROPERTY_BYTES, 0)
    words = overlapping(buffer, U32_ITEMS)
    found: Mask = fits & (words[tail] == _CRC_WORD)
    return found


def _add_keys(
    facts: Facts,
    buffer: Bytes,
    starts: Ints,
    lengths: Ints,
    queues: Sequence[Key],
    policies: Mapping[Key, QueuePolicy],
    salt: int,
) -> None:
    is_compact = [key in policies and policies[key].compact for key in queues]
    chosen = np.flatnonzero(np.array(is_compact, np.bool_)[facts["queue"]] & facts["can_go"])
    if len(chosen):
        keys = hash_keys(buffer, starts[chosen], lengths[chosen], salt)
        facts["has_key"][chosen] = keys.has_key
        facts["key_high"][chosen] = keys.high
        facts["key_low"][chosen] = keys.low


def _add_erased(
    facts: Facts,
    window: memoryview,
    at: Ints,
    starts: Ints,
    lengths: Ints,
    queues: Sequence[Key],
    policies: Mapping[Key, QueuePolicy],
) -> None:
    """Marks the records that have a key to be erased; a step of Python only for those that hold its text."""
    erased = [policies[key].erased if key in policies else frozenset() for key in queues]
    everything = frozenset[bytes]().union(*erased)
    if not everything or not len(facts):
        return
    data = bytes(window)
    for key in everything:
        place = data.find(key)
        while place >= 0:
            row = int(np.searchsorted(at, place, "right")) - 1
            if row >= 0 and facts["can_go"][row] and key in erased[int(facts["queue"][row])]:
                raw = data[int(starts[row]) : int(starts[row] + lengths[row])]
                keys = props.find_property(raw, props.KEYS.encode()) or b""
                facts["is_erased"][row] |= key in {keys, *keys.split(b" ")}
            place = data.find(key, place + 1)
