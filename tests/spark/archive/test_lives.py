"""Random lives of a store and its archive: nothing is dropped in silence, nothing is mixed, all comes back.

What must be refused is said by plain Python, from what the store serves and what the archive holds: a queue
that ends before its last archived message, or has another one there.
"""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from seglog import MessageStore
from seglog.errors import DataLossError, StoreMismatchError
from seglog.spark.archive.archive import archive_store
from seglog.spark.archive.folder import ArchiveFolder, archived, still_missing
from seglog.spark.archive.restore import restore_store
from seglog.spark.archive.rows import read_archive
from seglog.spark.compact.policy import Policy
from seglog.spark.compact.swap import discard_old
from seglog.storage.files.files import RealFiles
from seglog.storage.format.record import PLACEHOLDER_FLAG
from seglog.storage.format.record.message import decode_message
from tests.spark.archive.stores import BEGIN_MS, NEW_SIZES, compact, copy, damage, expire, put
from tests.support.material.compactions import said
from tests.support.material.stores import served
from tests.support.scale import commit_seed, is_gate, scaled

pytestmark = pytest.mark.spark


LIVES = scaled(2, 120)
STEPS = 4 if is_gate() else scaled(7, 16)
LATER_MS = BEGIN_MS + 10**9


@dataclass
class Life:
    """A store, its copies, and its archive.

    Attributes:
        spark: The session.
        folder: Where all is.
        rng: Decides.
        name: What the archive calls the store now.
        puts: How many messages were put, over all copies.
        copies: What the store was.
        done: What was done, for a failure.
    """

    spark: SparkSession
    folder: Path
    rng: random.Random
    name: str = "s"
    puts: int = 0
    copies: list[Path] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    @property
    def root(self) -> Path:
        """The store."""
        return self.folder / "s"

    @property
    def archive(self) -> Path:
        """The archive."""
        return self.folder / "archive"

    def append(self) -> None:
        """Puts messages that no other life of the store has."""
        topic, count = self.rng.choice("TTU"), self.rng.randrange(1, 90)
        put(self.root, count, begin=self.puts, topic=topic, word=f"w{self.rng.randrange(1000)}")
        self.puts += count

    def keep(self) -> None:
        """Copies the store."""
        self.copies.append(copy(self.root, self.folder / f"copy {len(self.copies)}"))

    def roll_back(self) -> None:
        """Puts an older copy in place of the store, and writes on, or not."""
        if self.copies:
            self.replace(self.rng.choice(self.copies))
            if self.rng.random() < 0.7:
                self.append()

    def replace(self, other: Path) -> None:
        """Puts a copy in place of the store."""
        shutil.rmtree(self.root)
        shutil.rmtree(self.root.with_name("s.compact"), ignore_errors=True)
        copy(other, self.root)

    def become_another(self) -> None:
        """Begins another store."""
        shutil.rmtree(self.root)
        self.append()

    def compact(self) -> None:
        """Compacts the topics of the store."""
        policy = self.rng.choice([Policy(compact=True), Policy(retention_bytes=self.rng.randrange(9000))])
        compact(self.root, LATER_MS, **dict.fromkeys({topic for topic, _queue in self.served()}, policy))
        discard_old(RealFiles(), self.root)

    def expire(self) -> None:
        """Has retention take files."""
        expire(self.root, self.rng.randrange(1, 4))

    def lose(self) -> None:
        """Damages a record and archives what is left; then the store is whole again."""
        served = self.served()
        aside = copy(self.root, self.folder / "aside")
        one = self.rng.choice([one for queue in served.values() for one in queue.values()])
        place = one.topic, one.queue_id, one.queue_offset
        is_proof = place in {min(queue) for queue in served.values()} | self.lasts()
        damage(self.root, one.queue_id, one.queue_offset, one.topic)
        before = len(ArchiveFolder(self.archive).runs())
        if not self.must_refuse():
            if place not in self.held():
                with pytest.raises((DataLossError, StoreMismatchError)):
                    archive_store(self.root, self.archive, self.spark, name=self.name)
                assert len(ArchiveFolder(self.archive).runs()) == before
            self.archive_what_is_left(is_proof=is_proof)
        self.replace(aside)
        shutil.rmtree(aside)

    def archive_what_is_left(self, *, is_proof: bool) -> None:
        """Archives a store with a damaged record, which may be all that proves which store it is."""
        before = self.files()
        try:
            archive_store(self.root, self.archive, self.spark, name=self.name, allow_loss=True)
        except StoreMismatchError as error:
            if not is_proof or "the log of this one begins with another record" not in str(error):
                raise
            assert self.files() == before
        else:
            self.check()

    def archive_it(self) -> None:
        """Archives the store, under a new name where it does not continue."""
        fills = self.rng.random() < 0.4
        if self.must_refuse():
            before = self.files()
            with pytest.raises(StoreMismatchError):
                archive_store(self.root, self.archive, self.spark, name=self.name, fill_missing=fills)
            assert self.files() == before
            self.name = f"s{len(self.done)}"  # one that no other deed gives
        archive_store(self.root, self.archive, self.spark, name=self.name, fill_missing=fills)
        self.check()
        assert archive_store(self.root, self.archive, self.spark, name=self.name) is None

    def restore(self) -> None:
        """Makes a store of the archive, compares it, and continues with it."""
        held = self.held()
        if not held:
            return
        again = self.folder / "again"
        done = restore_store(self.archive, again, self.spark, store=self.name, sizes=NEW_SIZES, apply=True)
        now = {place: one for queue in served_of(again).values() for place, one in queue.items()}
        missing = self.missing()
        filled = {place for place in now if place not in held}
        assert filled <= missing
        assert done.placeholders == sum(one.flag == PLACEHOLDER_FLAG for one in now.values())
        assert {place: said(now[place]) for place in held} == {
            place: said(one) for place, one in held.items()
        }
        self.replace(again)
        shutil.rmtree(again)

    def served(self):
        """Returns what the store serves."""
        return served_of(self.root)

    def held(self):
        """Returns the messages of the archive by topic, queue and offset, each once."""
        rows = read_archive(self.spark, self.archive, self.name)
        found = {}
        for row in rows.select("head", "body", "tail").collect() if rows is not None else ():
            message = decode_message(b"".join(map(bytes, row)), verify=True)
            place = message.topic, message.queue_id, message.queue_offset
            assert place not in found
            found[place] = message
        return found

    def files(self):
        """Returns what counts of the archive, by name, with lengths."""
        return {path: path.stat().st_size for path in self.archive.rglob("*.[jp]*")}

    def runs(self):
        """Returns the runs of the store's name."""
        return [run for run in ArchiveFolder(self.archive).runs() if run.name == self.name]

    def lasts(self):
        """Returns the last archived place of each queue."""
        return {(*key, parts[-1].end - 1) for key, parts in archived(self.runs()).items()}

    def missing(self):
        """Returns the places that the archive names as missing."""
        ranges, _stretches = still_missing(self.runs())
        return {(one.topic, one.queue_id, at) for one in ranges for at in range(one.first, one.end)}

    def must_refuse(self):
        """Returns whether the store does not continue what is archived under its name."""
        held, now = self.held(), self.served()
        with MessageStore.open(self.root, read_only=True) as store:
            ends = {(one.topic, one.queue_id): one.max_offset for one in store.queues()}
        known = archived(self.runs())
        for key, parts in known.items():
            last = *key, parts[-1].end - 1
            queue = now.get(key, {})
            if ends.get(key, parts[-1].end) < parts[-1].end:
                return True
            if last in queue and not is_same(queue[last], held[last]):
                return True
        return bool(known) and not any(key in ends for key in known)

    def check(self):
        """Asserts that all that the store serves is archived or named, and that all offsets are."""
        held, missing = self.held(), self.missing()
        assert not held.keys() & missing
        firsts = {key: parts[0].first for key, parts in archived(self.runs()).items()}
        for key, queue in self.served().items():
            for place, message in queue.items():
                if place[2] >= firsts[key]:
                    assert place in held or place in missing, place
                if place in held:
                    assert is_same(message, held[place]), place
        for topic, queue_id, first in {(*key, first) for key, first in firsts.items()}:
            own = sorted(at for t, q, at in held.keys() | missing if (t, q) == (topic, queue_id))
            assert own == list(range(min(own[0], first), own[-1] + 1))


def served_of(root):
    """Returns what a store serves by queue, and by topic, queue and offset."""
    with MessageStore.open(root, read_only=True) as store:
        queues = [(key, queue) for key, queue in served(store).items() if queue]
        return {key: {(*key, one.queue_offset): one for one in queue} for key, queue in queues}


def is_same(one, other):
    """Returns whether two messages are the same, or one of them is what a compaction left of it."""
    if said(one) == said(other):
        return True
    is_less = PLACEHOLDER_FLAG in (one.flag, other.flag)
    return is_less and one.store_timestamp_ms == other.store_timestamp_ms


DEEDS = [
    *[Life.append, Life.append, Life.keep, Life.archive_it, Life.archive_it, Life.roll_back, Life.compact],
    *[Life.expire, Life.restore, Life.lose, Life.become_another],
]


@pytest.mark.parametrize("seed", range(LIVES))
def test_random_lives(spark: SparkSession, tmp_path, seed):
    name = f"{commit_seed()} {seed}" if is_gate() else seed
    life = Life(spark, tmp_path, random.Random(name))
    life.append()
    life.archive_it()
    try:
        for deed in life.rng.choices(DEEDS, k=STEPS):
            life.done.append(deed.__name__)
            deed(life)
        life.archive_it()
        life.restore()
    except BaseException as error:
        error.add_note(f"seed {name}: {', '.join(life.done)}")
        raise
