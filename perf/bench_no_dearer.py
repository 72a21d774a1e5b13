"""``python -m perf.bench_no_dearer BASE``: is anything dearer than in an older version of this repository?

BASE is a tree of that version (``git worktree add``). The kernels of both are built in the same way, by
``tools/build-kernels seglog/storage/kernels``: flags alone make up to 2 % of instructions. Each round
measures, in random order, BASE, BASE once more (A/A shows how far two runs of one program differ)
and this tree. A row is dearer if its median takes more CPU time than that of BASE by more than the A/A spread
and 3 %. Where A/A spreads more than 5 %, times say little, and instructions decide, which ``--instructions``
counts; ``--instructions all`` counts those of each row.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final

from perf.figures import machine
from perf.stores.no_dearer_work import COUNTING

HERE: Final = Path(__file__).resolve().parents[1]
_WORK: Final = HERE / "perf" / "stores" / "no_dearer_work.py"
ALLOWED: Final = 0.03
MOST_SPREAD: Final = 0.05
_FILLED: Final = {"fill": 300_000, "fill small": 100, "fill queues": 3_000}
"""Messages in each store that is read."""
_FEW: Final = {"fill": 10_000, "fill small": 100, "fill queues": 300}
_OF_OTHER_STORES: Final = {"reopen small": "fill small", "open queues": "fill queues"}
_COUNTS: Final = {
    "put": 400_000,
    "batch": 1_000_000,
    "sync": 1_500,
    "sync batch": 16_000,
    "pull": 600_000,
    "random get": 100_000,
    "query": 600,
    "query read only": 600,
    "reopen": 1,
    "reopen small": 1,
    "open queues": 1,
    "check": 1,
}
_COUNTED: Final = {
    "put": 4_000,
    "batch": 8_192,
    "sync": 1_000,
    "sync batch": 3_200,
    "pull": 8_000,
    "random get": 2_000,
    "query": 40,
    "query read only": 40,
    "reopen": 1,
    "reopen small": 1,
    "open queues": 1,
    "check": 1,
}
_FRESH: Final = ("put", "batch", "sync", "sync batch")
"""Rows with a new store; the others read a filled one."""


@dataclass
class Row:
    """The measurements of a row, by contestant: ``a``, ``a again``, ``b``.

    Attributes:
        cpu_s: CPU time of each round.
        wall_s: Time of each round.
        instructions: How many callgrind counted, if it did.
    """

    cpu_s: dict[str, list[float]] = field(default_factory=dict)
    wall_s: dict[str, list[float]] = field(default_factory=dict)
    instructions: dict[str, int] = field(default_factory=dict)

    @property
    def spread(self) -> float:
        """The median distance between the two runs of A."""
        pairs = zip(self.cpu_s["a"], self.cpu_s["a again"], strict=True)
        return median([abs(again / first - 1) for first, again in pairs])

    @property
    def dearer(self) -> float:
        """The excess of B's median over the median of all samples of A, as a share of the latter."""
        return median(self.cpu_s["b"]) / median(self.cpu_s["a"] + self.cpu_s["a again"]) - 1

    @property
    def more_instructions(self) -> float | None:
        """The share of further instructions that B runs; None if they were not counted."""
        return self.instructions["b"] / self.instructions["a"] - 1 if self.instructions else None

    @property
    def verdict(self) -> str:
        """``no``, ``yes``, or that instructions must be counted."""
        more = self.more_instructions
        if self.spread > MOST_SPREAD and more is None:
            return "count instructions"
        above = self.dearer - self.spread if more is None or self.spread <= MOST_SPREAD else more
        return "yes" if above > ALLOWED else "no"


def run(tree: Path, row: str, folder: Path, count: int, command: Sequence[str] = ()) -> str:
    """Runs a cell over the ``seglog`` of a tree; returns its output."""
    words = [*command, sys.executable, str(_WORK), row, str(folder), str(count)]
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONHASHSEED": "0"}
    if command:
        environment[COUNTING] = "yes"
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{row} over {tree} failed:\n{done.stderr}")
    return done.stdout + done.stderr


def sample(tree: Path, row: str, stores: Path, count: int, command: Sequence[str] = ()) -> str:
    """Runs a cell in a folder of its own, with a copy of the filled store where it needs one."""
    with tempfile.TemporaryDirectory(prefix="cell-", dir=stores) as made:
        folder = Path(made) / "store"
        if row not in _FRESH:
            filled = stores / _OF_OTHER_STORES.get(row, "fill")
            subprocess.run(["cp", "-a", "--sparse=always", str(filled), str(folder)], check=True)
        return run(tree, row, folder, count, command)


def fill(tree: Path, stores: Path, rows: Sequence[str], counts: dict[str, int]) -> None:
    """Makes the stores that rows read."""
    stores.mkdir()
    for name in {_OF_OTHER_STORES.get(row, "fill") for row in rows if row not in _FRESH}:
        run(tree, name, stores / name, counts[name])


def instructions(tree: Path, row: str, stores: Path) -> int:
    """Returns how many instructions the work of a row runs in user space."""
    counter = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=/dev/null"]
    told = re.search(r"Collected : (\d+)", sample(tree, row, stores, _COUNTED[row], counter))
    if told is None:
        raise SystemExit("callgrind did not say how many instructions it counted")
    return int(told[1])


def measure(trees: dict[str, Path], rows: Sequence[str], rounds: int, folder: Path) -> dict[str, Row]:
    """Measures rows, one round after the other."""
    found = {row: Row() for row in rows}
    stores = folder / "stores"
    fill(trees["a"], stores, rows, _FILLED)
    chance = random.Random(1)
    cells = [(row, who) for row in rows for who in trees]
    for number in range(rounds):
        chance.shuffle(cells)
        for row, who in cells:
            told = sample(trees[who], row, stores, _COUNTS[row]).splitlines()[0]
            wall_s, cpu_s = json.loads(told)
            found[row].wall_s.setdefault(who, []).append(wall_s)
            found[row].cpu_s.setdefault(who, []).append(cpu_s)
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return found


def count(trees: dict[str, Path], found: dict[str, Row], folder: Path) -> None:
    """Counts the instructions of rows."""
    stores = folder / "few"
    fill(trees["a"], stores, list(found), _FEW)
    for row, figures in found.items():
        for who in ("a", "b"):
            figures.instructions[who] = instructions(trees[who], row, stores)
        print(f"counted {row}", file=sys.stderr, flush=True)


def to_table(found: dict[str, Row]) -> list[str]:
    """Returns the lines of a table."""
    lines = [
        "| row | A, CPU s | B, CPU s | B over A | A/A spread | wall | instructions | dearer |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row, one in found.items():
        old, new = median(one.cpu_s["a"] + one.cpu_s["a again"]), median(one.cpu_s["b"])
        wall = median(one.wall_s["b"]) / median(one.wall_s["a"] + one.wall_s["a again"]) - 1
        more = one.more_instructions
        counted = "" if more is None else f"{more:+.1%}"
        times = f"{old:.3f} | {new:.3f} | {one.dearer:+.1%} | {one.spread:.1%} | {wall:+.1%}"
        lines.append(f"| {row} | {times} | {counted} | {one.verdict} |")
    return lines


def main(arguments: Sequence[str]) -> None:
    """Measures and prints; exit code 1 if anything is dearer."""
    parser = argparse.ArgumentParser(prog="python -m perf.bench_no_dearer", description=__doc__)
    parser.add_argument("base", type=Path, help="the tree to compare with")
    parser.add_argument(
        "--tree", type=Path, default=HERE, help="the tree that is judged; this one by default"
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--rows", nargs="+", choices=list(_COUNTS), default=list(_COUNTS))
    parser.add_argument(
        "--instructions",
        nargs="?",
        const="vague",
        choices=["vague", "all"],
        help="count them where times say little",
    )
    parser.add_argument("--dir", type=Path, help="where stores are made")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table there too")
    options = parser.parse_args(arguments)
    trees = {"a": options.base.resolve(), "a again": options.base.resolve(), "b": options.tree.resolve()}
    load = os.getloadavg()[0]
    folder = Path(tempfile.mkdtemp(prefix="seglog-perf-", dir=options.dir))
    try:
        found = measure(trees, options.rows, options.rounds, folder)
        is_all = options.instructions == "all"
        if options.instructions:
            count(
                trees, {row: one for row, one in found.items() if is_all or one.spread > MOST_SPREAD}, folder
            )
    finally:
        shutil.rmtree(folder)
    told = f"{datetime.now(UTC).date().isoformat()}; {machine.describe()}; load {load:.1f}"
    rounds = f"{options.rounds} interleaved rounds, medians; {told} to {os.getloadavg()[0]:.1f}."
    lines = [rounds, "", *to_table(found)]
    print("\n".join(lines))
    if options.write is not None:
        options.write.write_text("\n".join(["# Nothing is dearer", *lines, ""]), encoding="utf-8")
    if any(one.verdict != "no" for one in found.values()):
        raise SystemExit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
