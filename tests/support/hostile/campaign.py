"""The campaign of hostile stores: which kinds of file meet which commands, in pieces that can be run alone.

The first stores cover every pair of a kind and a command, three of each in a store; then come stores of one
kind, or several, and commands at random.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from tests.support.hostile.bases import BASES
from tests.support.hostile.commands import ALL
from tests.support.hostile.kinds import KINDS
from tests.support.hostile.trial import CPU_S, DATA_BYTES, Trial, make_bases, try_store

EACH: Final = 100
"""Stores of a piece."""
FULL_PIECES: Final = 200
"""20,000 stores."""
_TOGETHER: Final = 3


@dataclass(frozen=True, slots=True)
class Case:
    """One store to make: its seed, the kinds to change, the commands to run."""

    seed: int
    kinds: list[str]
    commands: list[str]


def cases() -> Iterator[Case]:
    """Yields stores without end; the first ones cover every pair of kind and command."""
    seed = 0
    for kinds, names in _pairs():
        yield Case(seed, kinds, names)
        seed += 1
    while True:
        dice = random.Random(seed)
        base = dice.choices(list(BASES), weights=[len(_kinds_of(name)) for name in BASES])[0]
        of_base = _kinds_of(base)
        count = min(len(of_base), dice.choice((1, 1, 1, 2, 3)))
        yield Case(seed, dice.sample(of_base, count), dice.sample(list(ALL), _TOGETHER))
        seed += 1


def covering_count() -> int:
    """Returns how many stores it takes to cover every pair."""
    return sum(1 for _pair in _pairs())


def _pairs() -> Iterator[tuple[list[str], list[str]]]:
    dice = random.Random(16)
    groups = [group for base in BASES for group in _groups(_kinds_of(base))]
    tasks = [(group, names) for group in groups for names in _groups(dice.sample(list(ALL), len(ALL)))]
    dice.shuffle(tasks)
    yield from tasks


def _kinds_of(base: str) -> list[str]:
    return [name for name, kind in KINDS.items() if kind.base == base]


def _groups(names: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(names), _TOGETHER):
        yield names[start : start + _TOGETHER]


def run_piece(number: int) -> list[Trial]:
    """Runs the stores of a piece."""
    in_memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=in_memory if in_memory.is_dir() else None) as made:
        folder = Path(made)
        bases = make_bases()
        wanted = islice(cases(), number * EACH, (number + 1) * EACH)
        return [try_store(bases, folder / "trial", one.seed, one.kinds, one.commands) for one in wanted]


def run_once(number: int, results: Path) -> list[Trial]:
    """Runs a piece if it has no results yet, and returns them."""
    path = results / f"{number:03d}.json"
    if not path.exists():
        trials = run_piece(number)
        staged = path.with_suffix(".tmp")
        staged.write_text(json.dumps([asdict(trial) for trial in trials]))
        staged.rename(path)
    return [Trial(**fields) for fields in json.loads(path.read_text())]


def run_seed(seed: int, folder: Path) -> Trial:
    """Runs one store again, in an empty folder."""
    one = next(islice(cases(), seed, seed + 1))
    return try_store(make_bases(), folder / "trial", one.seed, one.kinds, one.commands)


def table(trials: Iterable[Trial]) -> str:
    """Returns the outcome in Markdown."""
    listed = list(trials)
    exits = Counter(code for trial in listed for code in trial.exits)
    pairs = {(kind, name) for trial in listed for kind in trial.kinds for name in trial.commands}
    slowest = max((trial.cpu_s for trial in listed), default=0.0)
    most = max((trial.peak_bytes for trial in listed), default=0)
    codes = ", ".join(f"{code}: {count:,}" for code, count in sorted(exits.items()))
    rows = {
        "stores": f"{len(listed):,}",
        "commands": f"{sum(exits.values()):,}",
        "pairs of kind and command": f"{len(pairs):,} of {len(KINDS) * len(ALL):,}",
        "stores that broke a promise": f"{sum(bool(trial.broken) for trial in listed):,}",
        "slowest command": f"{slowest:.1f} s of CPU (limit {CPU_S:.0f} s)",
        "most memory": f"{most >> 20} MiB resident (limit {DATA_BYTES >> 20} MiB of data)",
        "exit codes": codes,
    }
    lines = ["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in rows.items())]
    return "\n".join(lines)
