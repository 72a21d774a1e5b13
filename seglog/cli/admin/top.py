"""``seglog top``: the activity of brokers, drawn again every few seconds."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

import click

from seglog.cli.admin.asking import Brokers, Unreachable
from seglog.cli.admin.top_view import MOST_ROWS, OTHER_LINES, GroupRow, TopicRow, View
from seglog.cli.ui import options, render
from seglog.errors import RemoteProtocolError, SeglogError
from seglog.remoting.admin_bodies import (
    BrokerConsumeStatsBody,
    ConsumeStatsBody,
    FiguresBody,
    KeyValuesBody,
    NamesBody,
)
from seglog.remoting.admin_headers import BrokerConsumeStatsHeader, FiguresHeader
from seglog.remoting.codes import RequestCode
from seglog.text import printable


@click.command
@options.address
@click.option("--once", is_flag=True, help="Show it once, for scripts.")
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(min=0.2),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How often it is redrawn.",
)
@options.as_json
def command(*, address: str, once: bool, interval_s: float, as_json: bool) -> None:
    """Show what the brokers at ADDRESS do: messages a second, lag, locks, pulls that wait, slow requests.

    ADDRESS is a name server, or a broker of `seglog serve`, as host:port. On a terminal the view stays in its
    place until Ctrl-C; elsewhere each look is printed after the last one. At most twelve topics and groups
    are shown, the busiest first; --json has all. A broker that does not answer has a line that says so;
    with --once the command ends with that error after it has shown the others.
    """
    if not math.isfinite(interval_s):  # NaN is in every range
        raise click.UsageError("--interval: found no number; give --interval 2, say")
    with closing(Brokers(address)) as brokers:
        if once:
            _end(_print(_views(brokers), as_json=as_json))
        elif as_json or not sys.stdout.isatty():
            looks = _looks(brokers, address)
            while True:
                _print(next(looks), as_json=as_json)
                time.sleep(interval_s)
        else:
            _draw(brokers, address, interval_s)


def _looks(brokers: Brokers, address: str) -> Iterator[list[View | Unreachable]]:
    """Yields the views of each round; an error ends only the first round, if nothing answers at all."""
    yield list(_views(brokers))
    while True:
        try:
            yield list(_views(brokers))
        except SeglogError as error:
            yield [Unreachable("the name server", address, error)]


def _print(views: Iterable[View | Unreachable], *, as_json: bool) -> SeglogError | None:
    """Prints the views of a round, and returns the first error in them."""
    first: SeglogError | None = None
    for view in views:
        if isinstance(view, Unreachable):
            first = first or view.error
        if as_json:
            render.emit(view.as_json())
        elif isinstance(view, Unreachable):
            render.say(view.line)
        else:
            for line in view.lines():
                render.say(line)
    sys.stdout.flush()
    return first


def _end(error: SeglogError | None) -> None:
    if error is not None:
        raise error


def _draw(brokers: Brokers, address: str, interval_s: float) -> None:
    """Draws the activity of brokers in place on the terminal, until Ctrl-C."""
    from rich.live import Live
    from rich.text import Text

    with Live(auto_refresh=False, screen=True) as live:
        for views in _looks(brokers, address):
            live.update(Text("\n".join(drawn(views, *live.console.size))))
            live.refresh()
            time.sleep(interval_s)


def drawn(views: Sequence[View | Unreachable], width: int, height: int) -> Iterator[str]:
    """Yields the lines of a screen; its rows are divided among all tables."""
    tables = 2 * sum(isinstance(view, View) for view in views)
    left = height - sum(OTHER_LINES if isinstance(view, View) else 2 for view in views)
    most_rows = max(1, min(MOST_ROWS, left // max(1, tables)))
    for view in views:
        if isinstance(view, Unreachable):
            yield printable(view.line)
        else:
            yield from view.lines(width, most_rows)
        yield ""


def _views(brokers: Brokers) -> Iterator[View | Unreachable]:
    for broker, where in brokers.masters().items():
        try:
            facts = brokers.ask(where, RequestCode.GET_BROKER_RUNTIME_INFO, KeyValuesBody).values
            names = brokers.ask(None, RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, NamesBody).names
            topics = [row for name in sorted(names) if (row := _topic(brokers, where, name)) is not None]
            yield View(broker, where, facts, topics, list(_groups(brokers, where)))
        except SeglogError as error:
            yield Unreachable(broker, where, error)


def _topic(brokers: Brokers, where: str, topic: str) -> TopicRow | None:
    header = FiguresHeader("TOPIC_PUT_NUMS", topic)
    try:
        found = brokers.ask(where, RequestCode.VIEW_BROKER_STATS_DATA, FiguresBody, header)
    except RemoteProtocolError:  # the broker has not counted anything yet
        return None
    return TopicRow(topic, found.minute.per_s, found.day.total) if found.day.total else None


def _groups(brokers: Brokers, where: str) -> Iterator[GroupRow]:
    header = BrokerConsumeStatsHeader(is_order_only=False)
    found = brokers.ask(where, RequestCode.GET_BROKER_CONSUME_STATS, BrokerConsumeStatsBody, header)
    for entry in found.groups:
        for group, topics in entry.items():
            yield from (row for stats in topics if (row := _group(group, stats)) is not None)


def _group(group: str, stats: ConsumeStatsBody) -> GroupRow | None:
    offsets = stats.offsets
    if not offsets:
        return None
    topic = next(iter(offsets)).topic
    lag = sum(max(0, one.broker_offset - one.consumer_offset) for one in offsets.values())
    in_flight = sum(max(0, one.pull_offset - one.consumer_offset) for one in offsets.values())
    return GroupRow(group, topic, lag, in_flight, stats.consume_tps)
