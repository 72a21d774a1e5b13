"""``seglog spark``: jobs over whole stores on Apache Spark, from :mod:`seglog.spark`.

Each job is a module of its own, loaded when it is called. Shared are the choice of stores and cluster
(:mod:`seglog.cli.spark.options`), the session with its progress (:mod:`seglog.cli.spark.session`), and the
output of results (:mod:`seglog.cli.spark.results`). ``spark-submit`` runs :mod:`seglog.cli.spark.__main__`,
which has the same commands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click

from seglog.cli.ui.lazy_group import LazyGroup

COMMANDS: Final[Mapping[str, str]] = {
    "audit": "Check every record, queue, index and table of stores, as `seglog check` does.",
    "reconcile": "Say where each group is in each queue, and what became of each message.",
    "compact": "Keep the last message of each key; show what goes, or do it.",
    "retain": "Drop messages of single topics by age, size or key; show what goes, or do it.",
    "archive": "Add the messages of a store to an archive in Parquet, each once.",
    "restore": "Put archived messages back where they were, in a new store or an old one.",
    "sql": "Ask a question in SQL about messages, queues, offsets and the key index.",
}
"""Name and one line of help; module ``seglog.cli.spark.<name>`` holds ``command``."""


@click.group(
    cls=LazyGroup,
    homes={name: f"seglog.cli.spark.{name}" for name in COMMANDS},
    summaries=COMMANDS,
    epilog="Several stores are brokers that one job looks at together. Without --master it runs on all cores"
    " of this machine; `spark-submit .../seglog/cli/spark/__main__.py audit STORE` is the same on a cluster."
    " Exit codes: 0 nothing found but notes, 1 findings, 5 messages that are lost or cannot be read, 2 wrong"
    " usage; 3, and 10 and above, an error: it could not be done.",
)
def command() -> None:
    """Jobs over whole stores on Apache Spark; need a JDK 17 or newer and `pip install 'seglog[spark]'`."""
