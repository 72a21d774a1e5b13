"""Warns of requested topics that no store has: otherwise a typo would silently read nothing.

Known topics are those in the folders of queues and in ``config/topics.json``; the log is not walked. A store
without any queue may have lost its queues, so there is no warning then. It is only a warning, because a
stream may wait for a topic.
"""

from __future__ import annotations

from difflib import get_close_matches

from seglog.logs import logger
from seglog.spark.remote_files import locate
from seglog.spark.source.wanted.options import Options
from seglog.storage.directory import known_topics
from seglog.storage.format.names import BATCH_CONSUME_QUEUE, CONSUME_QUEUE

_log = logger(__name__)


def warn_of_unknown_topics(options: Options) -> None:
    """Writes a warning for each topic that ``subscribe`` or ``assign`` names and no store has."""
    named = (options.topics or frozenset()) | {topic for topic, _queue_id in options.queues or ()}
    known: set[str] = set()
    for path in options.paths if named else ():
        files, root = locate(path)
        folders = (CONSUME_QUEUE, BATCH_CONSUME_QUEUE)
        entries = (entry for folder in folders for entry in files.list_dir(root / folder))
        having_queues = {entry.name for entry in entries if entry.is_dir}
        if not having_queues:
            return
        known |= having_queues | (known_topics(files, root) or frozenset())
    by_lower = {topic.lower(): topic for topic in known}
    for topic in sorted(named - known):
        close = get_close_matches(topic.lower(), by_lower, 1)
        meant = f"; did you mean {by_lower[close[0]]}?" if close else ""
        _log.warning("no store has the topic %s, so it gives no rows%s", topic, meant)
