"""``python -m perf``: measures the store beside its peers, and prints tables.

With ``--json FILE`` each case goes into that file when it is done, in place of what the file had of it, and
the tables and a picture beside it follow from the whole file: a run may be stopped and continue with
``--missing``, and a single case may be measured again. ``--shown`` takes the rows of *Must be shown*, each
with those whom its aims name, seven rounds; before anything is measured it says how long that takes.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from perf.contestants.process import ROOT
from perf.figures import plot
from perf.figures.report import to_markdown
from perf.figures.results import Results, load, save
from perf.plan.budget import FIGURES_SIZE, SAMPLE_S
from perf.plan.pace import MIN_SAMPLE_S
from perf.sampling.program import NoCaseError, Program

_ROUNDS_FOR_FIGURES = 5
_ROUNDS_SHOWN = 7


def main(arguments: Sequence[str]) -> None:
    """Runs the cases of the command line."""
    options = _parse(arguments)
    # What is stopped half-way takes its stores and its peers along.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    results = load(options.json) if options.json is not None else Results()
    failures: list[str] = []
    if not options.report:
        command = f"python -m perf {' '.join(arguments)}".rstrip()
        try:
            program = Program(options, command, ROOT)
        except NoCaseError as error:
            sys.exit(str(error))
        failures = program.run(results)
    print(to_markdown(results))
    if options.json is not None:
        _write_report(results, options.json)
    if failures:
        sys.exit("\n".join(failures))


def _write_report(results: Results, path: Path) -> None:
    save(results, path)
    picture = path.with_suffix(".svg")
    plot.draw(results, picture)
    path.with_suffix(".md").write_text(to_markdown(results, picture.name), encoding="utf-8")


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m perf", description=__doc__)
    parser.add_argument(
        "--shown", action="store_true", help="the rows that must be shown, each with those whom its aims name"
    )
    parser.add_argument(
        "--size", type=float, default=FIGURES_SIZE, help="work a sample: 1 is a smoke test, 4 gives figures"
    )
    parser.add_argument(
        "--sample-s",
        type=float,
        default=SAMPLE_S,
        metavar="S",
        help="seconds of a sample at size 4 and above",
    )
    parser.add_argument(
        "--minutes", type=float, help="take shorter samples, down to 1 s, where all would not fit into these"
    )
    parser.add_argument(
        "--rounds", type=int, help="samples of each cell; by default 1 below size 4, else 5, with --shown 7"
    )
    parser.add_argument(
        "--cases", nargs="+", default=[], metavar="NAME", help="these only; * and ? as in a shell"
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="KEY", help="these contestants only")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="the seglog of another checkout too")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="add the samples to it; tables and plot beside it"
    )
    parser.add_argument(
        "--missing", action="store_true", help="pass over cases that the file has enough rounds of"
    )
    parser.add_argument("--report", action="store_true", help="measure nothing; write tables and plot again")
    parser.add_argument("--dir", type=Path, help="where stores are made; a file system with some free GB")
    options = parser.parse_args(arguments)
    if options.rounds is None:
        figures = _ROUNDS_SHOWN if options.shown else _ROUNDS_FOR_FIGURES
        options.rounds = 1 if options.size < FIGURES_SIZE else figures
    if options.size <= 0 or options.rounds < 1:
        parser.error("--size must be more than 0, and --rounds 1 or more")
    if not options.sample_s >= MIN_SAMPLE_S or (options.minutes is not None and not options.minutes > 0):
        parser.error(f"--sample-s must be {MIN_SAMPLE_S:g} or more, and --minutes more than 0")
    if options.report and options.json is None:
        parser.error("--report needs --json")
    return options


if __name__ == "__main__":
    main(sys.argv[1:])
