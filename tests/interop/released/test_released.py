"""RocketMQ judges what is said and made of damaged copies of stores that its releases wrote."""

from __future__ import annotations

import functools
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from seglog import errors
from seglog.errors import Ending
from seglog.remoting.codes import PullFlag, RequestCode
from seglog.remoting.command import Request
from seglog.remoting.headers import CreateTopicHeader, PullMessageHeader
from seglog.storage.format.layout import I32
from seglog.storage.format.names import COMMIT_LOG
from seglog.storage.format.record.message import decode_message
from seglog.storage.format.record.record import FLAG_AT, Damage, examine
from seglog.storage.format.record.tombstone import LOST_FLAG
from tests.interop.judging.java_broker import JavaBroker
from tests.interop.judging.judge import Judge, JudgeError
from tests.interop.judging.lines import Place, differences, place
from tests.interop.judging.questions import Dump, Line
from tests.interop.released.bases import BASES, IN_ROCKSDB, Base, base_root, copy_of, subject_of
from tests.interop.released.untouched import record_bytes
from tests.support.damage.campaign import KINDS
from tests.support.damage.mingled import MINGLING, mingle
from tests.support.damage.treatment import Said, run
from tests.support.machine.shared import content_digest, copy_tree
from tests.support.scale import chance, commit_seed, is_full, repeatable, scaled

pytestmark = pytest.mark.interop

COPIES = scaled(60, 300)
BY_BROKER = 15
"""One copy of so many is served by a whole broker too, in full runs."""
SYSTEM = ("%lmq%", "rmq_sys", "schedule_topic")
"""Topics that no consumer pulls from, or to which a broker itself adds messages."""
ACTS = (1, 1, 2, 3)
"""How many damages a copy has."""
EXITS = {ending.value for ending in Ending} - {Ending.BUG.value} | {
    one.exit_code for one in vars(errors).values() if isinstance(one, type) and hasattr(one, "exit_code")
}
ORDER = chance("bases").sample(sorted(BASES), len(BASES))

Judges = Callable[[str], Judge]
Pulled = dict[tuple[str, int], set[int]]
"""Physical offsets of what a broker serves, by topic and queue."""


@pytest.fixture(scope="module")
def judges(judge: Judge) -> Iterator[Judges]:
    """The real store of each release: a JVM for that of the run, and one for each other that is asked for."""
    others: dict[str, Judge] = {judge.version: judge}

    def of(release: str) -> Judge:
        if release not in others:
            others[release] = Judge(release)
        return others[release]

    yield of
    for other in others.values():
        if other is not judge:
            other.close()


@dataclass(frozen=True)
class Whole:
    """A store, and what RocketMQ serves of it.

    Attributes:
        messages: A line of each unit of each queue.
        records: Their bytes in the log.
    """

    base: Base
    messages: list[Line]
    records: dict[Place, bytes]


@functools.cache
def whole(judges: Judges, name: str, scratch: Path) -> Whole:
    """Asks RocketMQ for what it serves of an undamaged store."""
    base, root = BASES[name], copy_of(name, scratch / f"whole {name}")
    dump = opened(judges, base, root)
    assert not isinstance(dump, str), dump
    shutil.rmtree(root)
    messages = dump.of_kind("msg")
    return Whole(base, messages, records(base, base_root(name), messages))


@functools.cache
def pulled_of_whole(judges: Judges, name: str, scratch: Path) -> Pulled:
    """Asks a whole broker for the places that it serves of an undamaged store, by queue."""
    base, root = BASES[name], copy_of(name, scratch / f"whole {name} for a broker")
    queues = queues_of(whole(judges, name, scratch).messages)
    try:
        with judges(base.judged_by).broker(root, base.geometry, **base.told(root)) as broker:
            return {key: set(pulled_places(broker, base, *key)) for key in queues}
    finally:
        shutil.rmtree(root, ignore_errors=True)


def records(base: Base, root: Path, messages: list[Line]) -> dict[Place, bytes]:
    """Returns the bytes of the log that lines lead to."""
    return record_bytes(root, messages, base.geometry.segment_size_bytes, base.log_folders)


def opened(judges: Judges, base: Base, root: Path) -> Dump | str:
    """Returns what RocketMQ serves from a folder, or why it does not start; the folder is used up."""
    judge, told = judges(base.judged_by), base.told(root)
    try:
        if base.has_timer:
            answer = judge.run_timer(root, 0.1, base.geometry, **told)
            if answer["error"] is not None:
                return f"timer: {answer['error']}"
        dump = judge.dump(root, base.geometry, **told)
    except JudgeError as error:
        return str(error)
    return dump if dump.refusal is None else str(dump.refusal)


class Case:
    """A damaged copy of a store: what was done to it, and what of the promises is broken, in words."""

    def __init__(self, judges: Judges, number: int, scratch: Path) -> None:
        self.name = ORDER[number % len(ORDER)]
        self.base = BASES[self.name]
        self.broken: list[str] = []
        self.notes: dict[str, Any] = {}
        self._is_by_broker = is_full() and number % BY_BROKER == 0
        self._judges = judges
        self._scratch = scratch
        self._whole = whole(judges, self.name, scratch)
        self._root = copy_of(self.name, scratch / f"copy {number}")
        self._conf = scratch / f"broker {number}.conf"
        self._conf.write_text(self.base.broker_conf(self._root))
        drawn = chance("copy of a release", number)
        self.acts = self._harm(drawn)
        now = records(self.base, self._root, self._whole.messages)
        self._intact = {at for at, record in now.items() if record == self._whole.records[at]}

    def _harm(self, drawn: random.Random) -> list[str]:
        """Damages the copy, as long as it has a log; returns what was done."""
        done = []
        for _ in range(drawn.choice(ACTS)):
            kind = drawn.choice([*KINDS, *MINGLING])
            if kind in MINGLING:
                other = base_root(drawn.choice(sorted(BASES.keys() - {self.name})))
                done.append(mingle(self._root, other, kind, drawn))
            else:
                done.append(KINDS[kind](subject_of(self.name), self._root, drawn))
            if not any(path.stat().st_size for path in (self._root / COMMIT_LOG).glob("[0-9]*")):
                break
        return done

    def run(self) -> None:
        """Does all of it: checked, opened, repaired, opened, and undone."""
        try:
            before = digest(self._root)
            check = self._said("check")
            if digest(self._root) != before:
                self.broken.append("the check wrote to the store")
            self._hold(check, self._opened())
            repair = self._said("repair", "--apply", "--yes")
            plans = [line for line in repair.lines if line["kind"] == "plan"]
            if plans:
                self._repaired(check, repair)
            if self.base.log_folders != [COMMIT_LOG]:
                return  # an undo takes no configuration, and is refused where the log has several folders
            for _pack in repair.plan["undoPacks"] if plans else ():
                self._said("undo", conf=False)
            if digest(self._root) != before:
                self.broken.append(f"undo is not exact: {sorted(changed(before, digest(self._root)))[:5]}")
        finally:
            shutil.rmtree(self._root, ignore_errors=True)

    def _said(self, command: str, *options: str, conf: bool = True) -> Said:
        given = ["--broker-conf", self._conf] if conf else []
        said = Said(*run(command, "--json", *given, *options, self._root))
        self.notes[command] = said.exit_code
        if said.exit_code not in EXITS:
            self.broken.append(f"{command} ends with {said.exit_code}")
        return said

    def _served_by_broker(self) -> None:
        """Lets a whole broker serve the repaired copy: each record by its place, and by pulls."""
        root = copy_tree(self._root, self._root.with_name(f"{self._root.name} for a broker"))
        untouched = [line for line in self._whole.messages if place(line) in self._intact]
        judge = self._judges(self.base.judged_by)
        try:
            with judge.broker(root, self.base.geometry, **self.base.told(root)) as broker:
                lacking = {
                    place(line)
                    for line in untouched
                    if broker.ask_code(RequestCode.VIEW_MESSAGE_BY_ID, offset=str(line["cqPos"])).body
                    != self._whole.records[place(line)]
                }
                pulled = {key: set(pulled_places(broker, self.base, *key)) for key in queues_of(untouched)}
        except JudgeError as error:
            self.broken.append(f"repaired, but a broker does not start: {str(error)[:300]}")
            return
        finally:
            shutil.rmtree(root, ignore_errors=True)
        lacking |= {
            at
            for line in untouched
            if (at := place(line))[:2] in pulled
            and line["cqPos"] not in pulled[at[:2]]
            and not self._is_compacted_away(at[:2], line["cqPos"])
        }
        if lacking:
            self.broken.append(f"untouched, but not served by a broker: {named(lacking)}")

    def _is_compacted_away(self, queue: tuple[str, int], phy_offset: int) -> bool:
        """Returns whether a broker does not serve a message of a compaction topic of the undamaged store."""
        if "cleanup.policy" not in self.base.topics.get(queue[0], {}):
            return False
        return phy_offset not in pulled_of_whole(self._judges, self.name, self._scratch)[queue]

    def _opened(self) -> Dump | str:
        """Lets RocketMQ open a copy of the copy."""
        root = copy_tree(self._root, self._root.with_name(f"{self._root.name} for Java"))
        try:
            return opened(self._judges, self.base, root)
        finally:
            shutil.rmtree(root, ignore_errors=True)

    def _right(self, dump: Dump) -> set[Place]:
        """Returns the places at which RocketMQ serves what it served of the undamaged store."""
        served = {place(line): line for line in dump.of_kind("msg")}
        return {
            at
            for line in self._whole.messages
            if (at := place(line)) in served and not differences([line], [served[at]])
        }

    def _hold(self, check: Said, dump: Dump | str) -> None:
        """Holds a verdict against what RocketMQ does."""
        reports = [line for line in check.lines if line["kind"] == "check"]
        if not reports:
            self.notes["no report"] = True
            return
        verdict = reports[0]["verdict"]
        starts = verdict["rocketmqStarts"]
        self.notes["starts"] = starts
        if isinstance(dump, str):
            if starts in {"yes", "loses"}:
                self.broken.append(f"verdict {starts}, RocketMQ does not start: {dump[:300]}")
            return
        if starts == "no":
            self.broken.append(f"verdict no, RocketMQ starts: {verdict['why']}")
        if starts == "loses" and verdict["cutAt"] not in (None, dump.store["maxPhyOffset"]):
            self.broken.append(f"verdict cut at {verdict['cutAt']}, not {dump.store['maxPhyOffset']}")
        right = self._right(dump)
        self.notes["right before"] = len(right & self._intact)
        if check.exit_code == 0 and (lacking := self._intact - right):
            self.broken.append(f"clean, but not served: {named(lacking)}")

    def _repaired(self, check: Said, repair: Said) -> None:
        """Holds a plan against what RocketMQ serves of the repaired copy."""
        dump = self._opened()
        if isinstance(dump, str):
            if repair.exit_code != Ending.LEFT:
                self.broken.append(f"repaired, but RocketMQ does not start: {dump[:300]}")
            return
        right = self._right(dump)
        if lacking := self._intact - right:
            self.broken.append(f"untouched, but not served: {named(lacking)}")
        # A broker knows of batch queues by its table of topics alone.
        knows_topics = not self.base.topics or (self._root / "config" / "topics.json").exists()
        if self._is_by_broker and knows_topics and repair.exit_code != Ending.LEFT:
            self._served_by_broker()
        plan = repair.plan
        lost = {
            (one["topic"], one["queueId"], offset)
            for action in repair.actions
            for one in action["lost"]
            for offset in range(one["firstOffset"], one["firstOffset"] + one["count"])
        }
        self.notes |= {"right after": len(right & self._intact), "saved": plan["saved"], "lost": len(lost)}
        if wrong := lost & right:
            self.broken.append(f"said to be lost, but served: {named(wrong)}")
        now = records(self.base, self._root, self._whole.messages)
        places = {place(line): line["cqPos"] for line in self._whole.messages}
        start = dump.store["minPhyOffset"]
        silent = {
            at
            for at in self._whole.records.keys() - right - lost - self._intact
            if places[at] >= start and not stands(now[at], places[at])
        }
        if silent and not plan["mayBeMore"] and repair.exit_code != Ending.LEFT:
            self.broken.append(f"neither served nor said to be lost: {named(silent)}")
        verdict = next(line for line in check.lines if line["kind"] == "check")["verdict"]
        self.notes["lost, check"] = verdict["lostForGood"]
        is_sure = not plan["mayBeMore"] and not verdict["mayBeMore"] and verdict["lostForGood"] is not None
        if is_sure and verdict["lostForGood"] != plan["lost"]:
            self.broken.append(f"a check counts {verdict['lostForGood']} lost, a plan {plan['lost']}")


def queues_of(lines: list[Line]) -> dict[tuple[str, int], None]:
    """Returns the queues of lines that a consumer may pull from."""
    keys = {place(line)[:2]: None for line in lines}
    return {key: None for key in keys if not key[0].lower().startswith(SYSTEM)}


def pulled_places(broker: JavaBroker, base: Base, topic: str, queue_id: int) -> Iterator[int]:
    """Yields the physical offsets of all that a broker serves from a queue."""
    if topic not in broker.topics():
        attributes = ",".join(f"+{name}={value}" for name, value in base.topics.get(topic, {}).items())
        made = CreateTopicHeader(topic, "TBW102", 8, 8, 6, attributes=attributes or None)
        broker.ask(Request(RequestCode.UPDATE_AND_CREATE_TOPIC, made))
    at, last = -1, 0
    while at < last:
        at, flags = last, int(PullFlag.SUBSCRIPTION)
        header = PullMessageHeader("cg", topic, queue_id, at, 32, flags, 0, 0, 0, "*")
        answer = broker.ask(Request(RequestCode.PULL_MESSAGE, header))
        last = int(answer.ext["nextBeginOffset"])
        records = memoryview(answer.body)
        while records:
            message = decode_message(records)
            yield message.phy_offset
            records = records[message.size_bytes :]


KNOWN: dict[str, Callable[[Case, str], bool]] = {
    "what RocketMQ keeps in RocksDB is not looked at": lambda case, broken: (
        case.name in IN_ROCKSDB and "RocketMQ does not start" in broken
    ),
    "a check and a plan count otherwise where a log file is of another store": lambda case, broken: (
        any(act.startswith("file") and "as commitlog/" in act for act in case.acts)
        and "a check counts" in broken
    ),
    "what a kill left in no queue leaves no trace where the end of the log is damaged": lambda case, broken: (
        case.name.startswith("killed") and "neither served nor said to be lost" in broken
    ),
    "messages after the end of the log that only the index knows are not in doubt": lambda case, broken: (
        any(act.startswith("delete folder consumequeue") for act in case.acts)
        and "neither served nor said to be lost" in broken
    ),
}
"""Faults that are known, by name: a copy that shows nothing else is an expected failure."""


def digest(root: Path) -> dict[str, str]:
    """Returns what an undo gives back: everything but the lock, in which each holder leaves its mark."""
    return {name: one for name, one in content_digest(root).items() if name != "lock"}


def changed(one: dict[str, str], other: dict[str, str]) -> set[str]:
    """Returns the names at which two digests differ."""
    return {name for name, _content in one.items() ^ other.items()}


def stands(record: bytes, phy_offset: int) -> bool:
    """Returns whether bytes are a record that a repair kept as they stand, and no tombstone."""
    if not record or isinstance(examine(memoryview(record), 0, phy_offset), Damage):
        return False
    return bool(I32.unpack_from(record, FLAG_AT)[0] != LOST_FLAG)


def named(places: set[Place]) -> str:
    """Returns how many places there are, and the first of them."""
    return f"{len(places)} {sorted(places)[:4]}"


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for all copies."""
    return tmp_path_factory.mktemp("released")


@pytest.mark.parametrize("number", range(COPIES))
@pytest.mark.sampled(6)
def test_rocketmq_agrees_with_what_is_said_and_made_of_a_damaged_store(
    judges: Judges, scratch: Path, number: int
) -> None:
    with repeatable(commit_seed()):
        case = Case(judges, number, scratch)
        case.run()
        known = {
            broken: [name for name, is_it in KNOWN.items() if is_it(case, broken)] for broken in case.broken
        }
        assert [broken for broken in case.broken if not known[broken]] == [], (
            case.name,
            case.acts,
            case.notes,
        )
        if case.broken:
            pytest.xfail("; ".join(sorted({name for names in known.values() for name in names})))
