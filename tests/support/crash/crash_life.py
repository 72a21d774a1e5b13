"""The life of one store: it works, crashes, recovers, perhaps crashes in that, and works on.

Everything is drawn from one seed; ``python -m tests.support.crash.crash_life SEED`` lives it again and
reports.
"""

from __future__ import annotations

import random
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.errors import SeglogError
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.names import CHECKPOINT_FILE, CONFIG, LOCK_FILE
from seglog.storage.segments.segments import STAGED_SUFFIX
from seglog.storage.small_files.attic import ATTIC
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from tests.support.crash.crash_files import CrashFiles, KilledError
from tests.support.crash.crash_loop import do_at_once
from tests.support.crash.crash_model import Model, ViolationError, read_everything
from tests.support.crash.crash_work import SEGMENT_BYTES, STORE, StillClock, Work

QUEUE_FILE_BYTES: Final = 400
INDEX_GEOMETRY: Final = IndexGeometry(16, 64)
_NO_ROUNDS_MS: Final = 1 << 40
_MAX_DEPTH: Final = 3
"""So many crashes of a recovery follow each other at most."""
_HOLE_CODES: Final = frozenset({"log-hole", "queue-gap", "tombstones"})
"""What stays to be said of a store that has lost messages in the middle."""


@dataclass(slots=True)
class Outcome:
    """What came of a life.

    Attributes:
        images: Power cuts after which the store was opened again.
        kills: Deaths of the process alone.
        nested: Crashes of either kind within a recovery.
        closes: Clean stops.
        holes: Openings that named a hole.
        quick: Openings that began at a recovery point.
        violation: The promise that was not kept, which ended it.
    """

    images: int = 0
    kills: int = 0
    nested: int = 0
    closes: int = 0
    holes: int = 0
    quick: int = 0
    violation: ViolationError | None = None


class Life:
    """One store through many crashes.

    Args:
        seed: Of everything that happens.
        files_type: The files, perhaps with a seeded bug.
        images: Power cuts to survive.

    Attributes:
        outcome: What came of it so far.
        story: What happened, a line for each thing, each after the number of file calls so far.
    """

    def __init__(self, seed: int, files_type: type[CrashFiles] = CrashFiles, images: int = 12) -> None:
        self.outcome = Outcome()
        self.story: list[str] = []
        self._chance = random.Random(seed)
        self._files = files_type(self._chance)
        self._wanted_images = images
        self._clock = StillClock(1_800_000_000_000)
        self._model = Model()
        self._work = Work(self._chance, self._clock, self._model, self._tell)
        self._store: MessageStore | None = None
        self._left: set[Path] = set()  # what dead processes kept of bytes that they did not come to change

    def live(self) -> Outcome:
        """Lives to the end."""
        try:
            if self._chance.random() < 0.5:
                self._work.declare(self._files)
            while self.outcome.images < self._wanted_images:
                self._store = store = self._open()
                self._check(store)
                self._be_busy(store)
        except ViolationError as violation:
            self.outcome.violation = violation
        except Exception as error:  # noqa: BLE001 - an engine that raises anything else is broken too
            self.outcome.violation = ViolationError("broke", repr(error))
            self.outcome.violation.__cause__ = error
        finally:
            self._bury()
        return self.outcome

    def _open(self) -> MessageStore:
        """Opens the store; recoveries may crash too."""
        depth = 0
        while True:
            dies = depth < _MAX_DEPTH and self._chance.random() < 0.3
            self._files.calls_left = self._chance.randrange(25) if dies else None
            self._left = {path for path in self._files.disk.unsynced() if path.parent == STORE / ATTIC}
            try:
                store = MessageStore.open(
                    STORE,
                    segment_size_bytes=SEGMENT_BYTES,
                    queue_file_size_bytes=QUEUE_FILE_BYTES,
                    index_geometry=INDEX_GEOMETRY,
                    flush_interval_ms=_NO_ROUNDS_MS,
                    recovery_step_bytes=1,
                    clock=self._clock,
                    files=self._files,
                )
            except KilledError:
                self._tell("dies while opening")
                self.outcome.nested += 1
                depth += 1
                self._crash()
            except SeglogError as error:
                raise ViolationError("does not open", repr(error)) from error
            else:
                self._files.calls_left = None
                do_at_once(store, self._files)
                return store

    def _check(self, store: MessageStore) -> None:
        report = store.recovery
        findings = [str(finding) for finding in report.findings]
        self.outcome.quick += report.walked_from > 0
        walk = f"{report.records} records from {report.walked_from} to {report.end_phy_offset}"
        self._tell(f"opens {report.mode}, {walk}, {findings}")
        try:
            self._model.check(store)
            self.outcome.holes += self._model.has_holes
            self._check_query(store)
            if self._chance.random() < 0.05:
                self._check_reader(store)
        except SeglogError as error:
            raise ViolationError("cannot be read", repr(error)) from error
        self._work.check_config(self._files)

    def _check_query(self, store: MessageStore) -> None:
        log = [kept.message for kept in self._model.log.values() if kept.places]
        if log and self._chance.random() < 0.5:
            message = self._chance.choice(log)
            if message not in store.query(message.topic, message.keys[0]):
                raise ViolationError("its key does not lead to it", message)

    def _check_reader(self, store: MessageStore) -> None:
        with MessageStore.open(STORE, read_only=True, clock=self._clock, files=self._files) as reader:
            if read_everything(reader) != read_everything(store):
                raise ViolationError("a reader sees other messages")

    def _be_busy(self, store: MessageStore) -> None:
        """Works until the crash, or to a clean stop."""
        # After a cut, what is left of the old tail shows where little is written over it.
        is_brief = store.recovery.cut_bytes > 0 and self._chance.random() < 0.4
        if not is_brief and self._chance.random() < 0.7:
            self._files.calls_left = self._chance.randrange(60)
        try:
            if self._chance.random() < 0.5:
                self._work.put_again(store)
            for _step in range(self._chance.choice((0, 1) if is_brief else (0, 1, 2, 3, 5, 8, 12))):
                self._work.step(store, self._files)
            if is_brief or self._chance.random() < 0.2:
                self._stop(store)
                return
        except KilledError:
            self._tell("dies")
        self._crash()

    def _stop(self, store: MessageStore) -> None:
        """Closes cleanly; then nothing may be left to say, and a power cut changes nothing."""
        self._tell("closes")
        store.close()
        self._store = None
        self.outcome.closes += 1
        self._model.make_certain()
        unsynced = [str(path) for path in self._files.disk.unsynced() - self._left if not _is_harmless(path)]
        if unsynced:
            raise ViolationError("not on the disk after a clean close", sorted(unsynced))
        self._files = self._files.after_power_loss()
        found = survey(STORE, self._files)
        told = {finding.code for finding in found.findings}
        if found.mode != "normal" or told - (_HOLE_CODES if self._model.has_holes else set()):
            raise ViolationError("findings after a clean close", [str(finding) for finding in found.findings])

    def _crash(self) -> None:
        self._bury()
        if self._chance.random() < 0.2:
            self._tell("next process")
            self.outcome.kills += 1
            self._files = self._files.after_kill()
        else:
            self._tell("power loss")
            self.outcome.images += 1
            self._files = self._files.after_power_loss()

    def _bury(self) -> None:
        """Ends the process, and the threads of its store."""
        self._files.die()
        if self._store is not None:
            with suppress(KilledError):
                self._store.close(force=True)
            self._store = None

    def _tell(self, what: str) -> None:
        self.story.append(f"{self._files.calls:4d} {what}")


def _is_harmless(path: Path) -> bool:
    """Returns whether a clean close need not bring a name to the disk.

    Config files see to themselves, an older checkpoint costs nothing, a lost seal is rebuilt, and what a
    dead process left unfinished is passed over and removed.
    """
    return (
        path.name in {LOCK_FILE, CHECKPOINT_FILE}
        or path.suffix in {STAGED_SUFFIX, ".tmp", ".seal"}
        or path.parent == STORE / CONFIG
    )


if __name__ == "__main__":
    life = Life(int(sys.argv[1]))
    outcome = life.live()
    print("\n".join(life.story))
    if outcome.violation is not None:
        raise outcome.violation
