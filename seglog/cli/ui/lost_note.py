"""What a search that found nothing adds where the store has lost messages: one of them may be the one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from seglog.cli.ui import options, render
from seglog.errors import NotFoundError, SeglogError
from seglog.storage.findings import Finding, Severity
from seglog.storage.store import MessageStore
from seglog.text import shell_line

_EARLIER: Final = "tombstones"


@contextmanager
def saying_what_is_lost(path: Path, findings: Callable[[], Iterable[Finding]]) -> Iterator[None]:
    """Makes the error of a search that finds no message say how many messages of the store are lost.

    Args:
        path: The store directory.
        findings: Returns those of an opening of it; called if nothing was found.

    Raises:
        NotFoundError: As the search raised it.
    """
    try:
        yield
    except NotFoundError as error:
        lossy = (one for one in findings() if one.severity is Severity.LOSS or one.code == _EARLIER)
        if count := sum(one.messages for one in lossy):
            check = shell_line(["seglog", "check", path])
            lost = render.count_text(count, "message")
            error.help = f"lost in the store: {lost}, of which one may be it; see `{check}`; {error.help}"
        raise


def findings_of(path: Path) -> tuple[Finding, ...]:
    """Returns what a reader finds when it opens a store; nothing if it cannot open it."""
    try:
        with MessageStore.open(path, create=False, read_only=True, follow=options.followed(path)) as store:
            return store.recovery.findings
    except SeglogError:
        return ()
