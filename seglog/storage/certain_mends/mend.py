"""One mend: the present bytes of a record, its former bytes, and the proof."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from seglog.storage.findings.findings import Finding
from seglog.storage.format.names import COMMIT_LOG, segment_file_name

BIT: Final = "bit"
HEAD: Final = "head"
ATTIC_KIND: Final = "attic"
MOVED: Final = "moved"
MAX_DOUBTED: Final = 256
"""If queue or index differ from more records than this, the cause was not flipped bits of records."""


@dataclass(frozen=True, slots=True)
class Mend:
    """The mend of one record.

    Attributes:
        kind: :data:`BIT` for one flipped bit, :data:`HEAD` for fields that are known from other places too,
            :data:`ATTIC_KIND` for a record that an earlier opening replaced, :data:`MOVED` for one that
            stands at another place.
        phy_offset: Physical offset of the record.
        before: Its present bytes.
        after: Its former bytes; the same number, but not equal.
        topic: Its topic after the mend.
        queue_id: Its queue.
        queue_offset: Its queue offset.
        proof: The proof as a text that follows the name of the message; for :data:`ATTIC_KIND` and
            :data:`MOVED`, the source.
        fields: The names of the changed fields, for :data:`HEAD`.
    """

    kind: str
    phy_offset: int
    before: bytes
    after: bytes
    topic: str
    queue_id: int
    queue_offset: int
    proof: str
    fields: str = ""

    @property
    def changed(self) -> range:
        """Positions in the record from the first byte that differs to the last."""
        differing = [at for at, byte in enumerate(self.after) if byte != self.before[at]]
        return range(differing[0], differing[-1] + 1)

    @property
    def named(self) -> str:
        """Topic, queue and queue offset."""
        return f"{self.topic}/{self.queue_id} {self.queue_offset}"

    @property
    def detail(self) -> str:
        """A short text about the change."""
        if self.kind == ATTIC_KIND:
            return f"{self.named}, of which {self.proof} has the bytes"
        if self.kind == MOVED:
            return f"{self.named}, which stands at {self.proof}"
        if self.kind == HEAD:
            return f"{self.fields} of {self.named}{self.proof}"
        changed = slice(self.changed.start, self.changed.stop)
        was, now = self.before[changed].hex(), self.after[changed].hex()
        return f"0x{was} becomes 0x{now} in {self.named}{self.proof}"

    def place(self, segment_size_bytes: int) -> tuple[str, int, int]:
        """Returns the file of the log, relative to the store, and position and size of the changed bytes."""
        position = self.phy_offset % segment_size_bytes
        name = f"{COMMIT_LOG}/{segment_file_name(self.phy_offset - position)}"
        return name, position + self.changed.start, len(self.changed)

    def finding(self, segment_size_bytes: int) -> Finding:
        """Returns the finding about the mend once it is written."""
        return Finding("record-mended", *self.place(segment_size_bytes), found=self.detail, messages=1)
