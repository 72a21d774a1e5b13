"""``python -m perf``: measures the store beside its peers, and prints tables.

With ``--json FILE`` each case goes into that file when it is done, in place of what the file had of it, and
the tables and a picture beside it follow from the whole file: a run may be stopped and go on with
``--missing``, and a single case may be measured again.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path

from perf.contestants.line_up import line_up
from perf.figures import machine, plot
from perf.figures.report import to_markdown
from perf.figures.results import Results, Run, load, save
from perf.figures.sample import SanityError
from perf.plan.budget import FIGURES_SIZE
from perf.plan.cases import CASES, SMOKE, Case
from perf.sampling.rounds import measure

_ROUNDS_FOR_FIGURES = 5


def main(arguments: Sequence[str]) -> None:
    """Runs what the command line asks for."""
    options = _parse(arguments)
    # What is stopped half-way takes its stores and its peers along.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    standing = CASES if options.cases or options.size >= FIGURES_SIZE else SMOKE
    cases = [case for case in standing if _is_chosen(case, options.cases)]
    if not cases:
        sys.exit(f"no case is called so; there are {', '.join(case.name for case in CASES)}")
    results = load(options.json) if options.json is not None else Results()
    failures: list[str] = []
    if not options.report:
        failures = _measure_all(results, cases, options, f"python -m perf {' '.join(arguments)}".rstrip())
    print(to_markdown(results))
    if options.json is not None:
        _write_report(results, options.json)
    if failures:
        sys.exit("\n".join(failures))


def _measure_all(
    results: Results, cases: Sequence[Case], options: argparse.Namespace, command: str
) -> list[str]:
    """Measures case by case, going on after one that could not be; returns why each of those could not."""
    taking_part = line_up(options.only, options.against)
    results.name({each.key: each.title for each in taking_part.contestants})
    results.left_out = taking_part.left_out
    failures: list[str] = []
    try:
        for case in cases:
            known = results.runs.get(case.name)
            if options.missing and known is not None and len(known.rounds) >= options.rounds:
                continue
            today = datetime.now(UTC).date().isoformat()
            run = Run(command, today, options.size, machine.describe(taking_part.java))
            try:
                measure(run, case, taking_part.contestants, round_count=options.rounds, directory=options.dir)
            except SanityError as error:
                failures.append(f"no figures of {case.name}: {error}")
                print(failures[-1], file=sys.stderr, flush=True)
                continue
            results.put(case.name, run)
            if options.json is not None:
                save(results, options.json)
    finally:
        taking_part.close()
    return failures


def _write_report(results: Results, path: Path) -> None:
    save(results, path)
    picture = path.with_suffix(".svg")
    plot.draw(results, picture)
    path.with_suffix(".md").write_text(to_markdown(results, picture.name), encoding="utf-8")


def _is_chosen(case: Case, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(case.name, pattern) for pattern in patterns)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m perf", description=__doc__)
    parser.add_argument(
        "--size", type=float, default=FIGURES_SIZE, help="work a sample: 1 is a smoke test, 4 gives figures"
    )
    parser.add_argument("--rounds", type=int, help="samples of each cell; by default 1 below size 4, else 5")
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
        options.rounds = 1 if options.size < FIGURES_SIZE else _ROUNDS_FOR_FIGURES
    if options.size <= 0 or options.rounds < 1:
        parser.error("--size must be more than 0, and --rounds 1 or more")
    if options.report and options.json is None:
        parser.error("--report needs --json")
    return options


if __name__ == "__main__":
    main(sys.argv[1:])
