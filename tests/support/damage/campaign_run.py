"""The campaign of random damage in pieces that can be run one by one, and its outcome as tables.

A piece is some seeds of one store; the store's name and a seed are all that it takes to do a damage again.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tests.support.damage.subjects import SUBJECTS
from tests.support.damage.trial import KIND_NAMES, REFUSED, REPAIRED, Trial, shared_patient, try_damage
from tests.support.damage.unseen import COPIES, DUE, EARLIER, FRONT, IDLE, NO_CHECKSUM, VALUES

EACH: Final = {name: 12 if name == "real-conf" else 60 for name in SUBJECTS}
"""Damages of a piece: 312 in one piece of each store. A whole broker directory takes 39 MB for each."""
FULL_PIECES: Final = 65
"""Of each store, for more than 20,000 damages."""

_REASONS: Final = (NO_CHECKSUM, COPIES, VALUES, DUE, EARLIER, FRONT, IDLE)


@dataclass(frozen=True)
class Piece:
    """Some seeds of a store."""

    store: str
    number: int

    @property
    def seeds(self) -> range:
        """Its seeds."""
        each = EACH[self.store]
        return range(self.number * each, (self.number + 1) * each)

    @property
    def file_name(self) -> str:
        """What its results are kept under."""
        return f"{self.number:03d}-{self.store.replace(' ', '-')}.json"

    def run(self, folder: Path, most: int | None = None) -> list[Trial]:
        """Tries its seeds.

        Args:
            folder: Where the damaged stores are, one after the other.
            most: How many seeds, the first ones; all if not given.
        """
        patient = shared_patient(self.store)
        return [try_damage(patient, folder / str(seed), seed) for seed in self.seeds[:most]]

    def run_once(self, results: Path) -> list[Trial]:
        """Runs the piece if it has no results yet, and returns them."""
        path = results / self.file_name
        if not path.exists():
            in_memory = Path("/dev/shm")
            with tempfile.TemporaryDirectory(dir=in_memory if in_memory.is_dir() else None) as folder:
                trials = self.run(Path(folder))
            staged = path.with_suffix(".tmp")
            staged.write_text(json.dumps([asdict(trial) for trial in trials]))
            staged.rename(path)
        return [Trial(**fields) for fields in json.loads(path.read_text())]


def pieces(count: int) -> Iterator[Piece]:
    """Yields so many pieces of each store, those with one number together."""
    for number in range(count):
        for store in SUBJECTS:
            yield Piece(store, number)


def tables(trials: dict[str, list[Trial]]) -> str:
    """Returns the outcome in Markdown.

    Args:
        trials: All trials of each store.
    """
    return "\n\n".join([_by_store(trials), _unseen(trials), _by_kind(trials)])


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    head = list(head)
    lines = [head, ["---"] + ["--:"] * (len(head) - 1)]
    lines += [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _with_sum(rows: list[list[object]]) -> list[list[object]]:
    sums = [sum(column) for column in zip(*(row[1:] for row in rows), strict=True)]
    return [*rows, ["**all**", *sums]]


def _by_store(trials: dict[str, list[Trial]]) -> str:
    rows: list[list[object]] = []
    for store, tried in trials.items():
        done = [trial for trial in tried if trial.repair != REFUSED]
        rows.append(
            [
                store,
                len(tried),
                sum(trial.seen for trial in tried),
                sum(not trial.seen for trial in tried),
                sum(trial.repair == REPAIRED for trial in tried),
                len(tried) - len(done),
                sum(not trial.left for trial in done),
                sum("undo gives another store" not in trial.broken for trial in done),
                sum(trial.hit for trial in tried),
                sum(trial.whole for trial in tried),
                sum(trial.changed for trial in tried),
                sum(not trial.is_good for trial in tried),
            ]
        )
    head = "store|damages|seen|unseen|repaired|refused|clean after|undone|messages hit|whole again"
    return _table([*head.split("|"), "served otherwise", "**promises broken**"], _with_sum(rows))


def _unseen(trials: dict[str, list[Trial]]) -> str:
    rows: list[list[object]] = []
    for store, tried in trials.items():
        reasons = Counter(trial.reason.partition(";")[0] for trial in tried if not trial.seen)
        rows.append([store, *(reasons[reason] for reason in _REASONS), reasons[""]])
    return _table(["unseen, by what changed", *_REASONS, "**should be seen**"], _with_sum(rows))


def _by_kind(trials: dict[str, list[Trial]]) -> str:
    rows: list[list[object]] = []
    for kind in KIND_NAMES:
        row: list[object] = [kind]
        for tried in trials.values():
            own = [trial for trial in tried if trial.kind == kind]
            row.append(f"{len(own):,} / {sum(not trial.seen for trial in own)}")
        rows.append(row)
    return _table(["damages / unseen", *trials], rows)
