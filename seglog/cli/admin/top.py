"""``seglog top``: what brokers do, drawn anew every few seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import closing

import click

from seglog.cli.admin.asking import Brokers
from seglog.cli.admin.top_view import GroupRow, TopicRow, View
from seglog.cli.ui import options, render
from seglog.errors import RemoteProtocolError
from seglog.remoting.admin_bodies import (
    BrokerConsumeStatsBody,
    ConsumeStatsBody,
    FiguresBody,
    KeyValuesBody,
    NamesBody,
)
from seglog.remoting.admin_headers import BrokerConsumeStatsHeader, FiguresHeader
from seglog.remoting.codes import RequestCode


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
    help="How often it is shown anew.",
)
@options.as_json
def command(*, address: str, once: bool, interval_s: float, as_json: bool) -> None:
    """Show what the brokers at ADDRESS do: messages a second, lag, locks, pulls that wait, slow requests.

    ADDRESS is a name server, or a broker of `seglog serve`, as host:port. On a terminal the view stays in its
    place until Ctrl-C; elsewhere each look is printed after the last one. At most twelve topics and groups
    are shown, the busiest first; --json has all.
    """
    with closing(Brokers(address)) as brokers:
        if once:
            _print(_views(brokers), as_json=as_json)
        elif as_json or not sys.stdout.isatty():
            while True:
                _print(_views(brokers), as_json=as_json)
                time.sleep(interval_s)
        else:
            _draw(brokers, interval_s)


def _print(views: Iterator[View], *, as_json: bool) -> None:
    for view in views:
        if as_json:
            render.emit(view.as_json())
        else:
            for line in view.lines():
                render.say(line)
    sys.stdout.flush()


def _draw(brokers: Brokers, interval_s: float) -> None:
    """Draws what brokers do in one place of the terminal, until Ctrl-C."""
    from rich.live import Live
    from rich.text import Text

    with Live(auto_refresh=False, screen=True) as live:
        while True:
            live.update(Text("\n".join(line for view in _views(brokers) for line in (*view.lines(), ""))))
            live.refresh()
            time.sleep(interval_s)


def _views(brokers: Brokers) -> Iterator[View]:
    for broker, where in brokers.masters().items():
        facts = brokers.ask(where, RequestCode.GET_BROKER_RUNTIME_INFO, KeyValuesBody).values
        names = brokers.ask(None, RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, NamesBody).names
        topics = [row for name in sorted(names) if (row := _topic(brokers, where, name)) is not None]
        yield View(broker, where, facts, topics, list(_groups(brokers, where)))


def _topic(brokers: Brokers, where: str, topic: str) -> TopicRow | None:
    header = FiguresHeader("TOPIC_PUT_NUMS", topic)
    try:
        found = brokers.ask(where, RequestCode.VIEW_BROKER_STATS_DATA, FiguresBody, header)
    except RemoteProtocolError:  # nothing was counted
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
    lag = sum(one.broker_offset - one.consumer_offset for one in offsets.values())
    in_flight = sum(max(0, one.pull_offset - one.consumer_offset) for one in offsets.values())
    return GroupRow(group, topic, lag, in_flight, stats.consume_tps)
