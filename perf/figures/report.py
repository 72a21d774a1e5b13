"""The tables of the results, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from perf.figures.aims import AIMS
from perf.figures.results import Results, Run
from perf.figures.spread import Spread, figures, ratios
from perf.plan.budget import Budget
from perf.plan.cases import CASE, CASES, Case, Workload
from perf.plan.columns import COLUMNS
from perf.workloads.reads import RANDOM_PLACES

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
    budgets = sorted({(run.size, run.sample_s) for run in results.runs.values() if run.sample_s})
    for name, why in results.left_out.items():
        yield f"Left out: {name}, because {why}."
        yield ""
    yield (
        "Medians of all rounds (lowest–highest); contestants took turns within each round, and × is how many "
        "times as good as RocketMQ the one before it was in the same round. *Bare* messages have neither "
        "properties nor `__CRC32#`, are in one queue, and are not indexed; *usual* ones have TAGS, KEYS "
        "and UNIQ_KEY, `__CRC32#` and four queues. A write counts when it can be consumed, a usual one when "
        "it is found by its key too; waiting for that is part of the time. Files have RocketMQ's default "
        "lengths; where single calls are timed, log files are of 64 MiB, so that some calls begin one."
    )
    yield ""
    yield (
        "seglog takes part twice, over its kernels in C and in Python; LMDB, SQLite and Honker's stream are "
        "used from Python, a transaction a put; Kafka's log as its broker does, `appendAsLeader` of a batch "
        "that was encoded once, as RocketMQ's are; commitlog, walrus and fjall from Rust. LMDB, SQLite, "
        "Honker and Chronicle Queue have no checksums; only RocketMQ, LMDB and SQLite have keys; Honker's "
        "bodies are base64 in JSON. commitlog does not sync, walrus does not read at a place. A dash: it "
        "cannot, or it took no part in that row."
    )
    yield ""
    yield (
        "**The disk.** seglog and RocketMQ flush every 500 ms by themselves. All others are flushed by the "
        "harness, which calls `fdatasync` on all files of the log every 500 ms, in its own process: what "
        "that takes on a core is not in their CPU time. In rows *on the disk* each put is synced before it "
        "returns."
    )
    yield ""
    yield (
        "**Samples.** "
        + (_times([Budget(*each) for each in budgets]) if budgets else "")
        + " Java processes (G1, 1–2 GiB of heap) stay for all rounds of a case, and have loaded their "
        "classes before a reopen is timed. Before each sample of a writer the harness touches as much "
        "memory as the sample and its warm-up may fill, and gives it back, so that no page cache "
        "waits for the host of a virtual machine."
    )
    yield ""
    yield (
        "**Rows.** What README shows is "
        + ", ".join(f"*{case.title}*" for case in CASES if case.is_loop)
        + ": `for message in store.get(...)` and `message.body`. *Views* hand out memory of the log that "
        "was not read yet; *bytes copied* is all of a pull in one piece. Everything that is read is in the "
        f"page cache; *one anywhere* is one of {RANDOM_PLACES:,} places in turn, 18 MiB of messages."
    )


def _times(budgets: Sequence[Budget]) -> str:
    seconds = _range([budget.seconds for budget in budgets])
    filled_mib = _range([budget.max_stored_bytes >> 20 for budget in budgets])
    warm_up, of_java, first = (
        _range([getattr(budget, name) for budget in budgets])
        for name in ("warm_up_seconds", "jvm_warm_up_seconds", "first_warm_up_seconds")
    )
    return (
        f"A sample of reads or writes is {seconds} s, or what fills {filled_mib} MiB of our log, after a "
        f"warm-up of {warm_up} s; of Java after {of_java} s, and before its first one after {first} s more "
        "of the same work into other logs."
    )


def _range(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:,g}" if low == high else f"{low:,g} to {high:,g}"


def _aims(results: Results) -> Iterator[str]:
    yield _row(["case", "who", "aim", "found", "met", "commit, day"])
    yield _rule(6)
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
        yield _row(
            [title, results.titles.get(aim.who, aim.who), aim.text(results.titles), *verdict, run.whence]
        )


def _figures(results: Results) -> Iterator[str]:
    shown = _seen(results)
    heads: list[str] = []
    for key in shown:
        heads += [results.titles[key], *(["×"] if key in _OURS else [])]
    yield _row(["case", "in", *heads, "commit, day"])
    yield _rule(3 + len(heads))
    for case, run, column in _columns(results):
        cells = [_title(case, column), COLUMNS[column].unit]
        for key in shown:
            cells.append(_text(figures(run.samples, key, column, COLUMNS[column].scale)))
            if key in _OURS:
                cells.append(_text(ratios(run.samples, key, _ROCKETMQ, column)))
        yield _row([*cells, run.whence])


def _shares(results: Results) -> Iterator[str]:
    yield "The limit: 64 KiB a `pwrite` to a fresh, reserved file, in the same round. Counts: log and queues."
    yield ""
    keys = [key for key in _seen(results) if key in {*_OURS, _ROCKETMQ}]
    yield _row(["case", "pwrite, MB/s", *(f"{results.titles[key]}, %" for key in keys)])
    yield _rule(2 + len(keys))
    for name, run in results.runs.items():
        if CASE[name].workload is Workload.BATCH and any("limit" in each for each in run.samples):
            limit = figures(run.samples, "limit", "bytes_per_s", 1e6)
            shares = (ratios(run.samples, key, "limit", "bytes_per_s") for key in keys)
            yield _row([CASE[name].title, _text(limit), *(_percent(share) for share in shares)])


def _cpu(results: Results) -> Iterator[str]:
    yield "Of the whole process, background threads included, in µs a message."
    yield ""
    shown = _seen(results)
    yield _row(["case", *(results.titles[key] for key in shown)])
    yield _rule(1 + len(shown))
    for name, run in results.runs.items():
        if CASE[name].columns[0] == "per_s":
            yield _row([CASE[name].title, *(_text(figures(run.samples, key, "cpu_us")) for key in shown)])


def _runs(results: Results) -> Iterator[str]:
    """Returns what was run: cases that one command measured stand together."""
    commands: dict[tuple[str, str, str], list[Run]] = {}
    for run in results.runs.values():
        commands.setdefault((run.command, run.whence, str(run.machine)), []).append(run)
    for (command, whence, machine), runs in commands.items():
        loads = [value for run in runs for each in run.rounds for value in each.load]
        rounds = sorted({len(run.rounds) for run in runs})
        yield (
            f"- `{command}`, {whence}; {machine}; {len(runs)} cases, {'–'.join(map(str, rounds))} rounds, "
            f"{sum(run.took_s for run in runs) / 60:.1f} minutes; load {_text(Spread.of(loads))}"
        )
    yield ""
    yield "Load of the last minute before and after each round is with the samples, in the JSON file."


def _seen(results: Results) -> list[str]:
    """Returns the keys of those who have a figure in some case, but for the machine's limit."""
    seen = {key for run in results.runs.values() for each in run.samples for key in each}
    return [key for key in results.titles if key in seen and key != "limit"]


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
