"""``seglog spark retain``: drops messages by age, by the size of their queue, or by key, for each topic."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from seglog.cli.admin.amounts import Duration, Size, of_topics
from seglog.cli.spark import options as spark_options
from seglog.cli.spark.compaction import Wish, run, wish
from seglog.cli.spark.options import Cluster
from seglog.cli.ui import options
from seglog.spark.compact import Policy


@click.command
@spark_options.stores
@click.option(
    "--max-age", "ages", metavar="TOPIC=AGE", multiple=True, help="Drop messages older than this, such as 7d."
)
@click.option(
    "--max-bytes",
    "sizes",
    metavar="TOPIC=SIZE",
    multiple=True,
    help="Drop the oldest messages of each queue that has more bytes of records, such as 2g.",
)
@click.option(
    "--erase-key", "keys", metavar="TOPIC=KEY", multiple=True, help="Drop the messages that have this key."
)
@wish
@spark_options.cluster
@options.as_json
def command(
    *,
    paths: Sequence[Path],
    ages: tuple[str, ...],
    sizes: tuple[str, ...],
    keys: tuple[str, ...],
    wish: Wish,
    cluster: Cluster,
    as_json: bool,
) -> None:
    """Drop messages of single topics of each STORE by age, size or key; show what that would drop.

    RocketMQ's own retention knows only whole log files, the same for all topics. --apply works as that of
    `seglog spark compact` does.
    """
    policies = _policies(ages, sizes, keys)
    if not policies and not (wish.undo or wish.discard_old):
        raise click.UsageError("nothing is asked: give --max-age, --max-bytes or --erase-key")
    run(paths, policies, wish, cluster, "retaining", as_json=as_json, did="messages dropped")


def _policies(ages: tuple[str, ...], sizes: tuple[str, ...], keys: tuple[str, ...]) -> dict[str, Policy]:
    by_age = of_topics(ages, Duration(), "--max-age")
    by_size = of_topics(sizes, Size(), "--max-bytes")
    by_key: dict[str, set[str]] = {}
    for text in keys:
        topic, equals, key = text.partition("=")
        if not equals or not topic or not key:
            raise click.BadParameter(f"{text!r} is no TOPIC=KEY", param_hint="'--erase-key'")
        by_key.setdefault(topic, set()).add(key)
    return {
        topic: Policy(
            retention_ms=by_age.get(topic),
            retention_bytes=by_size.get(topic),
            erased=frozenset(by_key.get(topic, ())),
        )
        for topic in sorted({*by_age, *by_size, *by_key})
    }
