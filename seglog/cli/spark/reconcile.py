"""``seglog spark reconcile``: the progress of each group in each queue, and a verdict on each message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from seglog.cli.spark import options
from seglog.cli.spark.options import Cluster
from seglog.cli.spark.results import Results, show_unread, to_results
from seglog.cli.spark.session import job_session
from seglog.cli.ui import render
from seglog.spark.reconcile import COPY, MESSAGE_VERDICTS, OK, QUEUE_VERDICTS, QueueVerdict, load_earlier

if TYPE_CHECKING:
    from seglog.spark.reconcile import MessageCounts, NextStep, Outcome


@click.command
@options.readable_stores
@click.option("--messages", is_flag=True, help="Say of each message, too, what became of it for each group.")
@click.option(
    "--receipts",
    metavar="FILE",
    help="What producers were told: Parquet, CSV or JSON lines; msgId, or topic, queueId, queueOffset.",
)
@click.option(
    "--since",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True),
    help="An earlier result (--json, or `queues` of --output): groups that have not moved since are stalled.",
)
@click.option("--no-verify", is_flag=True, help="Do not compute checksums: damaged messages count as there.")
@options.cluster
@to_results
def command(
    *,
    paths: Sequence[str],
    messages: bool,
    receipts: str | None,
    since: Path | None,
    no_verify: bool,
    cluster: Cluster,
    results: Results,
) -> None:
    """Hold consumer offsets, delays, retries, dead letters and transactions of each STORE against its queues.

    Gives one verdict for each group and queue: ok, lag, retrying, stalled, dead, below-min, ahead or orphan;
    with --messages one for each group and message. Several stores are the brokers of one cluster; those of
    several that cannot be read are named, and the exit code is then that of the first error.

    Ends with 1 where a group is ahead, below-min, stalled or has dead letters, where messages are lost,
    expired, duplicated or dead, and where offsets cannot be read: their table is damaged, lost or in RocksDB.
    --output writes the tables `stores`, `queues` and `messages`; --json prints messages that are neither
    delivered, passed nor pending. Slots in a row that share a verdict and have no record of their own are one
    row, from queueOffset to before endOffset.
    """
    earlier = None if since is None else load_earlier(since)
    with job_session(cluster, "reconciling", paths) as session:
        from seglog.spark.reconcile import reconcile_all

        outcome = reconcile_all(
            session,
            paths,
            earlier=earlier,
            messages=messages or receipts is not None,
            receipts=receipts,
            verify=not no_verify,
            folder=results.folder,
            form=results.format,
            wants_rows=results.is_json,
            unread=[] if len(paths) > 1 else None,
        )
        if results.is_json:
            _emit(outcome)  # rows are computed as they are printed
    if not results.is_json:
        _show(outcome)
        if results.folder is not None:
            render.say(f"written to {results.folder}")
        _show_next(outcome)
        show_unread(outcome.unread, as_json=False)
    if outcome.unread:
        raise click.exceptions.Exit(outcome.unread[0].error.exit_code)
    if not outcome.is_clean:
        raise click.exceptions.Exit(1)


def _emit(outcome: Outcome) -> None:
    for queue in outcome.queues:
        render.emit({"kind": "queue-verdict", **queue.fields()})
    for row in outcome.rows:
        render.emit({"kind": "message-verdict", **row})
    counts = outcome.counts
    if counts is not None:
        for (group, topic, verdict), count in sorted(counts.verdicts.items(), key=repr):
            render.emit(
                {
                    "kind": "verdict-count",
                    "group": group,
                    "topic": topic,
                    "verdict": verdict,
                    "messages": count,
                }
            )
    for store, text in outcome.unseen:
        render.emit({"kind": "unseen", "what": f"{store}: {text}"})
    show_unread(outcome.unread, as_json=True)
    tally = Counter(queue.verdict for queue in outcome.queues)
    line: dict[str, object] = {
        "kind": "reconcile",
        "stores": outcome.stores,
        "unread": [one.store for one in outcome.unread],
        "clean": outcome.is_clean,
        "queues": {verdict: tally[verdict] for verdict in QUEUE_VERDICTS if tally[verdict]},
        "next": {step.verdict: step.command for step in _next_steps(outcome)},
    }
    if counts is not None:
        line |= {"messages": sum(counts.messages.values()), "verdicts": counts.total}
        line |= {"messagesTimesGroups": counts.expected, "addsUp": counts.adds_up}
    render.emit(line)


def _show(outcome: Outcome) -> None:
    order = list(QUEUE_VERDICTS)
    shown = [queue for queue in outcome.queues if queue.verdict != OK]
    shown.sort(key=lambda queue: order.index(queue.verdict))
    if shown:
        store = ["store"] if len(outcome.stores) > 1 else []
        render.table(
            (*store, "group", "topic", "queue", "offset", "min", "max", "lag", "missed", "verdict", "status"),
            [(*[render.printable(queue.key.store) for _ in store], *_cells(queue)) for queue in shown],
            numbers=("queue", "offset", "min", "max", "lag", "missed"),
        )
        render.say()
    tally = Counter(queue.verdict for queue in outcome.queues)
    said = ", ".join(f"{render.count_text(tally[verdict])} {verdict}" for verdict in order if tally[verdict])
    render.say(f"groups and queues: {said or 'none'}")
    if outcome.counts is not None:
        _show_counts(outcome.counts)
    for name, text in outcome.unseen:
        render.say(f"not seen: {render.printable(name)}: {render.printable(text)}")


def _show_next(outcome: Outcome) -> None:
    steps = _next_steps(outcome)
    if steps:
        render.say()
    for step in steps:
        more = f"; {render.count_text(step.others)} more like it" if step.others else ""
        render.say(f"next: {render.printable(step.command)}")
        render.say(" " * 6, f"{step.verdict}: {step.why}{more}")
    if any(COPY in step.command.split() for step in steps):
        render.say(f"{COPY} is a copy of the store on a file system: an address is only read")


def _next_steps(outcome: Outcome) -> list[NextStep]:
    from seglog.spark.reconcile import next_steps

    return next_steps(outcome)


def _cells(queue: QueueVerdict) -> tuple[str, ...]:
    return (
        render.printable(queue.key.group),
        render.printable(queue.key.topic),
        str(queue.key.queue_id),
        "-" if queue.offset is None else str(queue.offset),
        str(queue.min_offset),
        str(queue.max_offset),
        str(queue.lag),
        str(queue.missed),
        queue.verdict,
        queue.status,
    )


def _show_counts(counts: MessageCounts) -> None:
    used = [verdict for verdict in MESSAGE_VERDICTS if any(key[2] == verdict for key in counts.verdicts)]
    pairs = sorted({(topic or "", group) for group, topic, _verdict in counts.verdicts})
    if used:
        render.say()
        render.table(
            ("topic", "group", *used),
            [
                (
                    topic or "?",
                    group or None,
                    *(counts.verdicts.get((group, topic or None, verdict), 0) for verdict in used),
                )
                for topic, group in pairs
            ],
            numbers=used,
        )
        render.say()
    messages = render.count_text(sum(counts.messages.values()), "message")
    is_all = "" if counts.adds_up else ", which is NOT what messages times groups come to"
    render.say(f"messages: {messages}, {render.count_text(counts.total, 'verdict')}{is_all}")
