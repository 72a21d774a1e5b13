"""The tables of topics and groups of a store that is not open, read and changed as a broker does.

The store does not contain the names of its cluster and broker, so the topics with these names, and the
system's, are not added here: a broker adds its own when it starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from seglog.broker.offsets import ConsumerOffsets
from seglog.broker.settings import BrokerConfig
from seglog.broker.tables import GroupTable, TopicTable
from seglog.clock import Clock
from seglog.doctor.groups.offset_moves import open_offsets
from seglog.storage.directory import demand_own_tables
from seglog.storage.files import Files, lock_held
from seglog.storage.format.names import CONFIG, OURS
from seglog.storage.small_files import ConfigFile

TOPICS_FILE: Final = f"{CONFIG}/topics.json"
GROUPS_FILE: Final = f"{CONFIG}/subscriptionGroup.json"


class HeldTables(NamedTuple):
    """The tables of a store whose lock is held."""

    topics: TopicTable
    groups: GroupTable
    offsets: ConsumerOffsets


def read_topics(files: Files, root: Path, clock: Clock, *, evidence: Path | None = None) -> TopicTable:
    """Returns the topics of a store; damaged files are not moved unless ``evidence`` is given.

    Raises:
        ConfigError: The file and its backup cannot be read.
    """
    file = ConfigFile(files, root / TOPICS_FILE, evidence)
    return TopicTable(file, BrokerConfig(), clock, lambda: None, with_system=False)


def read_groups(files: Files, root: Path, clock: Clock, *, evidence: Path | None = None) -> GroupTable:
    """Returns the groups of a store; damaged files are not moved unless ``evidence`` is given.

    Raises:
        ConfigError: The file and its backup cannot be read.
    """
    return GroupTable(
        ConfigFile(files, root / GROUPS_FILE, evidence), BrokerConfig(), clock, with_system=False
    )


@contextmanager
def hold_tables(files: Files, root: Path, clock: Clock) -> Iterator[HeldTables]:
    """Yields the tables of a store for changing them; offsets that were changed are saved at the end.

    Raises:
        StoreLockedError: A broker or another process has the store open.
        UnsupportedStoreError: Its broker keeps tables in RocksDB.
        ConfigError: A file and its backup cannot be read.
    """
    evidence = root / OURS / "evidence"
    demand_own_tables(files, root)  # before the lock, whose file it would make
    with lock_held(files, root):
        tables = HeldTables(
            read_topics(files, root, clock, evidence=evidence),
            read_groups(files, root, clock, evidence=evidence),
            open_offsets(files, root, clock),
        )
        with closing(tables.offsets):
            yield tables
            tables.offsets.persist()
