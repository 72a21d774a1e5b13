"""``python -m perf``: measures the store, with ``--peers`` beside others, and prints a table."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from perf import machine, report
from perf.cases import CASES, Budget, Case, SanityError
from perf.contestants import Contestant, PythonPeer, Seglog

_FIGURES_SIZE = 4.0


def main(arguments: Sequence[str]) -> None:
    """Runs what the command line asks for."""
    options = _parse(arguments)
    cases = [case for case in CASES if not options.only or any(part in case.name for part in options.only)]
    if not cases:
        sys.exit(f"no case is called so; there are {', '.join(case.name for case in CASES)}")
    results = report.Results(
        f"python -m perf {' '.join(arguments)}".rstrip(), datetime.now(UTC).date().isoformat()
    )
    load_before = os.getloadavg()[0]
    with ExitStack() as stack:
        contestants = _line_up(options, results, stack)
        try:
            for case in cases:
                results.rounds.append((case, _rounds(case, contestants, options)))
        except SanityError as error:
            sys.exit(f"no figures: {error}")
    results.machine = machine.describe((load_before, os.getloadavg()[0]), results.java)
    print(report.to_markdown(results))
    if options.json is not None:
        options.json.write_text(report.to_json(results), encoding="utf-8")
        options.json.with_suffix(".md").write_text(
            f"# Results\n{report.to_markdown(results)}", encoding="utf-8"
        )


def _line_up(options: argparse.Namespace, results: report.Results, stack: ExitStack) -> list[Contestant]:
    """Returns who takes part, and notes it, and who does not and why."""
    contestants: list[Contestant] = [Seglog()]
    if options.against:
        contestants.append(Seglog("other checkout", str(Path(options.against).resolve())))
    if options.peers:
        from perf import rocketmq

        missing = rocketmq.why_missing()
        if missing is None:
            peer = rocketmq.RocketMq()
            stack.callback(peer.close)
            contestants.append(peer)
            results.java = rocketmq.java_version()
        else:
            results.left_out["RocketMQ"] = missing
        contestants += [PythonPeer("SQLite WAL", "sqlite"), PythonPeer("plain file", "file")]
    results.contestants = [contestant.name for contestant in contestants]
    return contestants


def _rounds(case: Case, contestants: Sequence[Contestant], options: argparse.Namespace) -> list[report.Round]:
    """Measures all contestants in turn, again and again: A B C, A B C."""
    budget = Budget(options.size)
    rounds: list[report.Round] = []
    for number in range(options.rounds):
        taken: report.Round = {}
        for contestant in contestants:
            if contestant.knows(case):
                with tempfile.TemporaryDirectory(prefix="seglog-perf-", dir=options.dir) as directory:
                    taken[contestant.name] = contestant.sample(case, budget, Path(directory))
        rounds.append(taken)
        shown = ", ".join(f"{name} {sample.per_s / 1e3:,.1f}" for name, sample in taken.items())
        print(f"{case.name} {number + 1}/{options.rounds}: {shown} k/s", file=sys.stderr, flush=True)
    return rounds


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m perf", description=__doc__)
    parser.add_argument(
        "--size", type=float, default=_FIGURES_SIZE, help="work a sample: 1 is a smoke test, 4 gives figures"
    )
    parser.add_argument("--rounds", type=int, help="samples of each cell; by default 1 below size 4, else 3")
    parser.add_argument("--only", action="append", metavar="PART", help="cases whose name holds this")
    parser.add_argument(
        "--peers", action="store_true", help="RocketMQ's own store, SQLite and a plain file too"
    )
    parser.add_argument("--against", metavar="CHECKOUT", help="the seglog of another checkout too")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write all samples there, the table beside it"
    )
    parser.add_argument("--dir", type=Path, help="where stores are made; a file system with some free GB")
    options = parser.parse_args(arguments)
    if options.rounds is None:
        options.rounds = 1 if options.size < _FIGURES_SIZE else 3
    if options.size <= 0 or options.rounds < 1:
        parser.error("--size must be more than 0, and --rounds 1 or more")
    return options


if __name__ == "__main__":
    main(sys.argv[1:])
