"""What a search that found nothing adds where the store has lost messages: one of them may be the one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from seglog.cli.ui import options, render
from seglog.errors import NotFoundError, SeglogError
from seglog.storage.findings import Severity
from seglog.storage.store import MessageStore
from seglog.text import shell_line

_EARLIER: Final = "tombstones"


@contextmanager
def saying_what_is_lost(path: Path) -> Iterator[None]:
    """Makes the error of a search that finds no message say how many messages of the store are lost.

    Args:
        path: The store directory.

    Raises:
        NotFoundError: As the search raised it.
    """
    try:
        yield
    except NotFoundError as error:
        if count := _lost_messages(path):
            check = shell_line(["seglog", "check", path])
            lost = render.count_text(count, "message")
            error.help = f"lost in the store: {lost}, of which one may be it; see `{check}`; {error.help}"
        raise


def _lost_messages(path: Path) -> int:
    """Returns the number of messages that a reader of a store knows to be lost; 0 if it cannot be opened."""
    try:
        with MessageStore.open(path, create=False, read_only=True, follow=options.followed(path)) as store:
            findings = store.recovery.findings
    except SeglogError:
        return 0
    return sum(one.messages for one in findings if one.severity is Severity.LOSS or one.code == _EARLIER)
