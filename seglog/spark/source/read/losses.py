"""A lost part of a log: its stretch, the reason, and the messages; as an error, and as a warning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from seglog.errors import CorruptError
from seglog.logs import logger
from seglog.spark.source.wanted.selection import Selection
from seglog.storage.directory import StoreGeometry
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.overlay import LostMessages, tell_lost
from seglog.text import printable

_log = logger(__name__)
_HELP: Final = 'read what is left with option("failOnDataLoss", "false"); `seglog check` says what is lost'


@dataclass(frozen=True, slots=True)
class Loss:
    """Messages that cannot be read, and the stretch of the log that they were in.

    Attributes:
        phy_offset: Start of the stretch.
        end: End of the stretch, where records continue.
        why: A stable short word, as that of a finding's damage.
        expected: What should be there.
        found: What is there.
        messages: The lost messages, as far as they are known.
        help: Advice; empty for the usual advice.
    """

    phy_offset: int
    end: int
    why: str
    expected: str = ""
    found: str = ""
    messages: tuple[LostMessages, ...] = ()
    help: str = ""

    def of(self, selection: Selection) -> Loss | None:
        """Returns the part of the loss that concerns selected messages; None if there is none."""
        if not self.messages:
            return self
        wanted = tuple(part for one in self.messages for part in _wanted(one, selection))
        return replace(self, messages=wanted) if wanted else None


def loss_error(loss: Loss, geometry: StoreGeometry) -> CorruptError:
    """Returns the error for a loss with ``failOnDataLoss``."""
    position = loss.phy_offset % geometry.segment_size_bytes
    error = CorruptError(
        loss.why,
        file=f"{COMMIT_LOG}/{segment_file_name(loss.phy_offset - position)}",
        position_bytes=position,
        expected=loss.expected,
        found=_found(loss),
    )
    error.help = loss.help or _HELP
    return error


def report_losses(
    store: str, losses: Iterable[Loss], geometry: StoreGeometry, *, fails: bool, told: set[Loss] | None = None
) -> None:
    """Ends the query at the first loss, or writes a warning for each.

    Args:
        store: Name of the store.
        losses: The losses.
        geometry: Lengths of the store's files.
        fails: Whether ``failOnDataLoss`` is set.
        told: Losses of earlier warnings, which are not repeated; the new losses are added.

    Raises:
        CorruptError: There is a loss, and ``fails`` is set.
    """
    for loss in losses:
        if fails:
            raise loss_error(loss, geometry)
        if told is None or loss not in told:
            # The text contains data of the store, and warnings are printed on a terminal.
            _log.warning("%s: data loss: %s", printable(store), printable(str(loss_error(loss, geometry))))
        if told is not None:
            told.add(loss)


def _found(loss: Loss) -> str:
    return "; ".join(text for text in (loss.found, tell_lost(loss.messages)) if text)


def _wanted(lost: LostMessages, selection: Selection) -> Sequence[LostMessages]:
    span = selection.of_queue(lost.topic, lost.queue_id)
    if span is None:
        return ()
    left = range(max(lost.offsets.start, span.first), min(lost.offsets.stop, span.last + 1))
    return (replace(lost, offsets=left),) if left else ()
