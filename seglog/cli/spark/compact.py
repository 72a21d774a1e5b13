"""``seglog spark compact``: keeps only the last message of each key."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from seglog.cli.admin.amounts import Duration
from seglog.cli.spark import options as spark_options
from seglog.cli.spark.compaction import Wish, run, wish
from seglog.cli.spark.options import Cluster
from seglog.cli.ui import options
from seglog.spark.compact import DAY_MS, Policy


@click.command
@spark_options.stores
@click.option(
    "--topic",
    "topics",
    multiple=True,
    help="A topic to compact; may be repeated.  [default: those with cleanup.policy=COMPACTION]",
)
@click.option(
    "--delete-retention",
    type=Duration(),
    default=DAY_MS,
    help="How long a last message without body stays (delete.retention.ms).  [default: 1d]",
)
@click.option(
    "--min-lag",
    type=Duration(),
    default=0,
    help="Younger messages are not compacted (min.compaction.lag.ms).  [default: 0s]",
)
@wish
@spark_options.cluster
@options.as_json
def command(
    *,
    paths: Sequence[Path],
    topics: Sequence[str],
    delete_retention: int,
    min_lag: int,
    wish: Wish,
    cluster: Cluster,
    as_json: bool,
) -> None:
    """Keep the last message of each key (KEYS) in each queue of each STORE; show what that would drop.

    With --apply a new store is made beside the old one, verified, and put in its place at once. Queue offsets
    stay; a dropped message leaves an empty one behind where others follow. The old store stays in
    STORE.compact/old until it is discarded. A run that was interrupted is finished by the next.
    """
    policy = Policy(compact=True, delete_retention_ms=delete_retention, min_compaction_lag_ms=min_lag)
    run(paths, dict.fromkeys(topics, policy) or None, wish, cluster, "compacting", as_json=as_json)
