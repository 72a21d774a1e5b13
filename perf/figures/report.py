"""The tables of the results, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from perf.figures.aims import AIMS
from perf.figures.results import Results, Run
from perf.figures.spread import Spread, figures, ratios
from perf.plan.budget import Budget
from perf.plan.cases import CASE, Case, Workload
from perf.plan.columns import COLUMNS

_ROCKETMQ: Final = "rocketmq"
_OURS: Final = ("native", "python", "other")


def to_markdown(results: Results, plot: str = "") -> str:
    """Returns all tables.

    Args:
        results: What was found.
        plot: Name of the picture beside the file, empty for none.
    """
    lines = ["# Beside its peers", "", *_how(results), ""]
    if plot:
        lines += [f"![rates of all cases]({plot})", ""]
    lines += ["## Aims", "", *_aims(results), "", "## All figures", "", *_figures(results), ""]
    lines += ["## Batches as a share of what `pwrite` takes", "", *_shares(results), ""]
    lines += ["## CPU time", "", *_cpu(results), "", "## How it was measured", "", *_runs(results), ""]
    return "\n".join(lines)


def _how(results: Results) -> Iterator[str]:
    sizes = sorted({run.size for run in results.runs.values()})
    for name, why in results.left_out.items():
        yield f"Left out: {name}, because {why}."
        yield ""
    yield (
        "Medians of all rounds (lowest–highest); contestants took turns within each round, and × is how many "
        "times as good as RocketMQ the one before it was in the same round. *Bare* messages have neither "
        "properties nor `__CRC32#`, lie in one queue, and nobody indexes them; *usual* ones have TAGS, KEYS "
        "and UNIQ_KEY, `__CRC32#` and four queues. A write counts when it can be consumed, a usual one when "
        "it is found by its key too; waiting for that is part of the time. Files have RocketMQ's default "
        "lengths; where single calls are timed, log files are of 64 MiB, so that some calls begin one."
    )
    yield ""
    yield (
        "seglog takes part twice, over its kernels in C and in Python. LMDB and SQLite are used from Python, "
        "a transaction a put; without a sync they leave the disk to the system as all others do. None of the "
        "peers but RocketMQ has checksums, and Chronicle Queue has no keys. A sample of reads or writes is "
        + ", ".join(_times(Budget(size)) for size in sizes)
        + " RocketMQ and Chronicle Queue keep their JVM (G1, 1–2 GiB of heap) for all rounds of a case. "
        "Before each sample of a writer the harness touches 1 or 2 GiB of memory and gives it back, so "
        "that nobody's page cache waits for the host of a virtual machine."
    )


def _times(budget: Budget) -> str:
    return (
        f"{budget.seconds:g} s after a warm-up of {budget.warm_up_seconds:g} s; of a JVM after "
        f"{budget.first_warm_up_seconds:g} s the first time and {budget.next_warm_up_seconds:g} s then."
    )


def _aims(results: Results) -> Iterator[str]:
    yield _row(["case", "who", "aim", "found", "met"])
    yield _rule(5)
    for aim in AIMS:
        run = results.runs.get(aim.case)
        if run is None:
            continue
        found = aim.found(run.samples)
        what = COLUMNS[aim.column].what
        title = CASE[aim.case].title + (f": {what}" if what else "")
        verdict = ("–", "not measured")
        if found is not None:
            verdict = (found.text(), "yes" if aim.is_met(found) else "**no**")
        yield _row([title, results.titles.get(aim.who, aim.who), aim.text(results.titles), *verdict])


def _figures(results: Results) -> Iterator[str]:
    shown = [key for key in results.titles if key != "limit"]
    heads: list[str] = []
    for key in shown:
        heads += [results.titles[key], *(["×"] if key in _OURS else [])]
    yield _row(["case", "in", *heads])
    yield _rule(2 + len(heads))
    for case, run, column in _columns(results):
        cells = [_title(case, column), COLUMNS[column].unit]
        for key in shown:
            cells.append(_text(figures(run.samples, key, column, COLUMNS[column].scale)))
            if key in _OURS:
                cells.append(_text(ratios(run.samples, key, _ROCKETMQ, column)))
        yield _row(cells)


def _shares(results: Results) -> Iterator[str]:
    yield "The limit: 64 KiB a `pwrite` to a fresh, reserved file, in the same round. Counts: log and queues."
    yield ""
    keys = [key for key in (*_OURS, _ROCKETMQ) if key in results.titles]
    yield _row(["case", "pwrite, MB/s", *(f"{results.titles[key]}, %" for key in keys)])
    yield _rule(2 + len(keys))
    for name, run in results.runs.items():
        if CASE[name].workload is Workload.BATCH:
            limit = figures(run.samples, "limit", "bytes_per_s", 1e6)
            shares = (ratios(run.samples, key, "limit", "bytes_per_s") for key in keys)
            yield _row([CASE[name].title, _text(limit), *(_percent(share) for share in shares)])


def _cpu(results: Results) -> Iterator[str]:
    yield "Of the whole process, background threads included, in µs a message."
    yield ""
    shown = [key for key in results.titles if key != "limit"]
    yield _row(["case", *(results.titles[key] for key in shown)])
    yield _rule(1 + len(shown))
    for name, run in results.runs.items():
        if CASE[name].columns[0] == "per_s":
            yield _row([CASE[name].title, *(_text(figures(run.samples, key, "cpu_us")) for key in shown)])


def _runs(results: Results) -> Iterator[str]:
    """Returns what was run: cases that one command measured stand together."""
    commands: dict[tuple[str, str, str], list[Run]] = {}
    for run in results.runs.values():
        commands.setdefault((run.command, run.date, str(run.machine)), []).append(run)
    for (command, date, machine), runs in commands.items():
        loads = [value for run in runs for each in run.rounds for value in each.load]
        rounds = sorted({len(run.rounds) for run in runs})
        yield (
            f"- `{command}`, {date}; {machine}; {len(runs)} cases, {'–'.join(map(str, rounds))} rounds, "
            f"{sum(run.took_s for run in runs) / 60:.1f} minutes; load {_text(Spread.of(loads))}"
        )
    yield ""
    yield "Load of the last minute before and after each round is with the samples, in the JSON file."


def _columns(results: Results) -> Iterator[tuple[Case, Run, str]]:
    for name, run in results.runs.items():
        for column in CASE[name].columns:
            yield CASE[name], run, column


def _title(case: Case, column: str) -> str:
    what = COLUMNS[column].what
    return f"{case.title}: {what}" if what and len(case.columns) > 1 else case.title


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _rule(columns: int) -> str:
    return _row(["---"] * columns)


def _text(spread: Spread | None) -> str:
    return "–" if spread is None else spread.text()


def _percent(spread: Spread | None) -> str:
    if spread is None:
        return "–"
    return Spread(100 * spread.middle, 100 * spread.low, 100 * spread.high).text()
